from pathlib import Path

import pytest

from mxopt.chapter import (
    chapter_errata,
    checklist_errata,
    deployment_errata,
    errata,
    guide_errata,
    own_errata,
)
from mxopt.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


def test_the_page_is_what_the_errata_say_today():
    assert PAGE.read_text(encoding="utf-8") == errata.page()


@pytest.mark.parametrize(
    ("show", "printed", "right"),
    [
        (chapter_errata.loader_over_the_old_data, 20, 0),
        (chapter_errata.validation_that_rolls_over, 32 / 25, 1),
        (chapter_errata.loss_that_is_a_sum, 16, 1),
        (chapter_errata.throughput_clock_never_reset, 100, 1000),
        (chapter_errata.overflow_applied, 0, 1),
        (chapter_errata.float32_after_amp, 16, 32),
        (chapter_errata.learning_rates_six_orders_apart, 1, 0),
        (chapter_errata.thirty_epochs_labelled_ten, 64.57, 21.52),
        (chapter_errata.best_epoch_of_the_validation, 0.941, 0.9),
        (own_errata.head_start, 5, 1),
        (guide_errata.rate_that_is_not_printed, 0.001, 0.1),
        (guide_errata.two_meanings_of_faster, 54.17, 35.14),
        (guide_errata.two_linear_maps_in_a_row, 1_611_274, 31_370),
        (guide_errata.gradients_not_divided, 16, 1),
        (guide_errata.decoder_that_is_never_trained, 0, 1),
        (checklist_errata.utilisation_without_zeros, 80, 20),
        (checklist_errata.repeated_before_it_is_shuffled, 1.228, 0),
        (checklist_errata.window_over_sorted_files, 1, 10),
        (checklist_errata.values_of_eight_bits, 256, 255),
        (checklist_errata.more_data_and_more_epochs, 1.2, 1.44),
        (deployment_errata.products_that_nobody_uses, 0, 10),
        (deployment_errata.block_of_channels, 25, 0),
    ],
)
def test_each_is_wrong_by_as_much_as_it_says(show, printed, right):
    assert show() == pytest.approx((printed, right), abs=0.005)


def test_without_the_logarithm_the_rate_is_too_small_by_orders_of_magnitude():
    printed, right = checklist_errata.steepest_without_logarithm()
    assert right == pytest.approx(1e-3, rel=0.3)
    assert printed < right / 100


def test_files_of_smaller_networks_are_as_large_as_before():
    pruned, compressed = deployment_errata.file_of_a_pruned_network()
    assert pruned == 100
    assert compressed < 40
    saved, packed = deployment_errata.file_of_a_quantized_network()
    assert saved == pytest.approx(100, abs=2)
    assert packed < 27


def test_a_fixed_scale_loses_gradients_that_a_large_one_keeps():
    fixed, large = deployment_errata.fixed_scale_of_a_loss()
    assert fixed == pytest.approx(100 * (40 - 28.3) / 35, abs=2)
    assert large == 0


def test_the_best_of_many_is_lucky():
    best, worth = deployment_errata.best_of_many()
    assert best - worth == pytest.approx(2.25 * 100 * (0.9 * 0.1 / 1000) ** 0.5, abs=0.2)


def test_a_clock_that_does_not_wait_stops_before_the_work_is_done():
    enqueued, computed = chapter_errata.clock_without_waiting()
    assert 0 < enqueued <= computed


def test_the_command_says_all_of_them(capsys):
    assert main(["errata"]) == 0
    said = capsys.readouterr().out
    assert all(erratum.title in said for erratum in errata.ERRATA)
    assert "on this machine" in said


def test_the_page_is_written(tmp_path, capsys):
    assert main(["errata", "--write", str(tmp_path / "errata.md")]) == 0
    assert (tmp_path / "errata.md").read_text(encoding="utf-8").startswith("# Errata as programs")


def test_our_own_erratum_has_its_figure_from_the_record_of_then():
    assert "**13.35 [7.98, 22.33], n = 3**" in own_errata.figures()
