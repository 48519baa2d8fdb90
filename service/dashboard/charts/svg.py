"""SVG and HTML elements as escaped markup. `style` is refused: the content security policy would drop it.

Charts are made of three coordinate systems, so that text keeps its size on every screen: marks lie in a stretched
viewBox of 1000 x 1000 units, text is placed in percent, heights are given in pixels.
"""

from collections.abc import Iterable

from markupsafe import Markup, escape

UNITS = 1000
"""Width and height of every stretched viewBox."""

Attribute = str | int | float | bool | None


def element(name: str, /, *children: str, **attributes: Attribute) -> Markup:
    """One element. `class_` stands for `class`, `_` for `-`; None and False leave an attribute out.

    Raises:
        ValueError: a `style` or `on…` attribute was asked for.
    """
    opening = Markup("<%s") % name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = "viewBox" if key == "viewBox" else key.rstrip("_").replace("_", "-")
        if attribute == "style" or attribute.startswith("on"):
            raise ValueError(f"inline {attribute!r} is blocked by the content security policy; use a class")
        if attribute == "preserveaspectratio":
            attribute = "preserveAspectRatio"
        opening += Markup(' %s="%s"') % (attribute, number(value) if isinstance(value, float) else value)
    inner = join(children)
    if not inner and name in _VOID:
        return opening + Markup("/>")
    return opening + Markup(">%s</%s>") % (inner, name)


_VOID = frozenset({"rect", "path", "line", "circle", "use"})


def join(parts: Iterable[str]) -> Markup:
    """Markup is kept, text is escaped."""
    return Markup("").join(escape(part) for part in parts)


def number(value: float) -> str:
    """A coordinate: at most two decimals, no exponent, no trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def stretched(*children: str, height: int, label: str, class_: str = "plot") -> Markup:
    """A drawing that fills its width; `role="group"`, because the marks inside may be links."""
    return element(
        "svg",
        *children,
        class_=class_,
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveaspectratio="none",
        width="100%",
        height=height,
        role="group",
        aria_label=label,
    )


def link(href: str | None, label: str, *children: str, tab: bool = True) -> Markup:
    """A mark that leads to the rows behind it; without an address, a group with a title."""
    title = element("title", label)
    if href is None:
        return element("g", title, *children)
    return element("a", title, *children, href=href, aria_label=label, tabindex=None if tab else -1)
