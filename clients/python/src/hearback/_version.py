"""The version of the package, which `User-Agent` names."""

__version__ = "0.1.0"
