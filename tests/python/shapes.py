"""Whether a value is what a type of `hearback.types` says."""

import functools
import types
import typing


def misfits(value, hint, at=""):
    """What of a value differs from its type, by JSON Pointer. A member that the type does not have differs too."""
    if hint is typing.Any:
        return
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if value not in arguments:
            yield f"{at}: {value!r} is not one of {arguments}"
    elif origin in (typing.Union, types.UnionType):
        found = [list(misfits(value, argument, at)) for argument in arguments]
        if all(found):
            yield from min(found, key=len)
    elif typing.is_typeddict(hint):
        yield from members(value, hint, at)
    elif origin is dict:
        for key, of in value.items():
            yield from misfits(of, arguments[1], f"{at}/{key}")
    elif origin is list:
        for index, of in enumerate(value):
            yield from misfits(of, arguments[0], f"{at}/{index}")
    elif not isinstance(value, (int, float) if hint is float else hint) or (hint is int and isinstance(value, bool)):
        yield f"{at}: {value!r} is not {hint}"


def members(value, hint, at):
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is not {hint}"
        return
    hints = hints_of(hint)
    for name in hint.__required_keys__ - value.keys():
        yield f"{at}/{name} is missing"
    for name, of in value.items():
        if name not in hints:
            yield f"{at}/{name} is unknown"
        else:
            yield from misfits(of, hints[name], f"{at}/{name}")


@functools.cache
def hints_of(hint):
    return typing.get_type_hints(hint)


class Checked:
    """An `Api` whose responses must be what the types of its methods say."""

    def __init__(self, api):
        self._api = api

    def __getattr__(self, name):
        method = getattr(self._api, name)
        hint = typing.get_type_hints(method)["return"]

        def call(**arguments):
            response = method(**arguments)
            assert not list(misfits(response, hint)), name
            return response

        return call


class CheckedAsync(Checked):
    """The same for an `AsyncApi`."""

    def __getattr__(self, name):
        method = getattr(self._api, name)
        hint = typing.get_type_hints(method)["return"]

        async def call(**arguments):
            response = await method(**arguments)
            assert not list(misfits(response, hint)), name
            return response

        return call
