"""The card of a method that does not exist."""

GOOD = """---
name: halving
switches: [half, loss (translation)]
companions: [batch_size]
kind: exact
tested_on: cpu
---

# Halving

## What it does

Halves. Twice.

## Use it

```shell
## not a heading
```

## When it helps, when it does not

## What it costs

## Measured

<!-- measured: begin -->
<!-- measured: end -->

## Source
"""


def write(tmp_path, text):
    path = tmp_path / "halving" / "README.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
