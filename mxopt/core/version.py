"""The version of mxopt."""

VERSION = "0.2.0"
