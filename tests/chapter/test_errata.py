from pathlib import Path

import pytest

from mxopt.chapter import errata
from mxopt.chapter.errata import chapter, checklist, deployment, guides, own
from mxopt.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"


def test_the_page_that_is_written_is_what_the_errata_say_today(tmp_path):
    assert main(["errata", "--write", str(tmp_path / "errata.md")]) == 0
    written = (tmp_path / "errata.md").read_text(encoding="utf-8")
    assert written.startswith("# Errata as programs")
    assert PAGE.read_text(encoding="utf-8") == written


@pytest.mark.parametrize(
    ("show", "printed", "right"),
    [
        (chapter.loader_over_the_old_data, 20, 0),
        (chapter.validation_that_rolls_over, 32 / 25, 1),
        (chapter.loss_that_is_a_sum, 16, 1),
        (chapter.throughput_clock_never_reset, 100, 1000),
        (chapter.overflow_applied, 0, 1),
        (chapter.float32_after_amp, 16, 32),
        (chapter.learning_rates_six_orders_apart, 1, 0),
        (chapter.thirty_epochs_labelled_ten, 64.57, 21.52),
        (chapter.best_epoch_of_the_validation, 0.941, 0.9),
        (own.head_start, 5, 1),
        (guides.rate_that_is_not_printed, 0.001, 0.1),
        (guides.two_meanings_of_faster, 54.17, 35.14),
        (guides.two_linear_maps_in_a_row, 1_611_274, 31_370),
        (guides.gradients_not_divided, 16, 1),
        (guides.decoder_that_is_never_trained, 0, 1),
        (checklist.utilisation_without_zeros, 80, 20),
        (checklist.repeated_before_it_is_shuffled, 1.228, 0),
        (checklist.window_over_sorted_files, 1, 10),
        (checklist.values_of_eight_bits, 256, 255),
        (checklist.more_data_and_more_epochs, 1.2, 1.44),
        (deployment.products_that_nobody_uses, 0, 10),
        (deployment.block_of_channels, 25, 0),
    ],
)
def test_each_is_wrong_by_as_much_as_it_says(show, printed, right):
    assert show() == pytest.approx((printed, right), abs=0.005)


def test_without_the_logarithm_the_rate_is_too_small_by_orders_of_magnitude():
    printed, right = checklist.steepest_without_logarithm()
    assert right == pytest.approx(1e-3, rel=0.3)
    assert printed < right / 100


def test_files_of_smaller_networks_are_as_large_as_before():
    pruned, compressed = deployment.file_of_a_pruned_network()
    assert pruned == 100
    assert compressed < 40
    saved, packed = deployment.file_of_a_quantized_network()
    assert saved == pytest.approx(100, abs=2)
    assert packed < 27


def test_a_fixed_scale_loses_gradients_that_a_large_one_keeps():
    fixed, large = deployment.fixed_scale_of_a_loss()
    assert fixed == pytest.approx(100 * (40 - 28.3) / 35, abs=2)
    assert large == 0


def test_the_best_of_many_is_lucky():
    best, worth = deployment.best_of_many()
    assert best - worth == pytest.approx(2.25 * 100 * (0.9 * 0.1 / 1000) ** 0.5, abs=0.2)


def test_a_clock_that_does_not_wait_stops_before_the_work_is_done():
    enqueued, computed = chapter.clock_without_waiting()
    assert 0 < enqueued <= computed


def test_the_command_says_all_of_them(capsys):
    assert main(["errata"]) == 0
    said = capsys.readouterr().out
    assert all(erratum.title in said for erratum in errata.ERRATA)
    assert "on this machine" in said


def test_our_own_erratum_has_its_figure_from_the_record_of_then():
    assert "**13.35 [7.98, 22.33], n = 3**" in own.figures()
