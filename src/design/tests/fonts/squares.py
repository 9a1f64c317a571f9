"""Makes squares.ttf beside it, a font for tests: squares, a kerned pair, a ligature and an accent. Needs fonttools from PyPI."""

from pathlib import Path

from fontTools.feaLib.builder import addOpenTypeFeaturesFromString
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

# Of each glyph: its character, its advance, and its boxes; a box with its corners swapped is a hole.
GLYPHS = {
    ".notdef": (None, 500, [(50, 0, 450, 700)]),
    "space": (" ", 500, []),
    "A": ("A", 700, [(0, 0, 600, 700), (400, 200, 200, 400)]),
    "V": ("V", 700, [(0, 0, 600, 700)]),
    "f": ("f", 400, [(0, 0, 300, 700)]),
    "i": ("i", 300, [(0, 0, 200, 500)]),
    "f_i": (None, 650, [(0, 0, 550, 700)]),
    "eacute": ("é", 600, [(0, 0, 500, 500), (200, 550, 300, 700)]),
}


def outline(boxes):
    pen = TTGlyphPen(None)
    for left, low, right, high in boxes:
        pen.moveTo((left, low))
        for corner in [(left, high), (right, high), (right, low)]:
            pen.lineTo(corner)
        pen.closePath()
    return pen.glyph()


font = FontBuilder(1000, isTTF=True)
font.setupGlyphOrder(list(GLYPHS))
font.setupCharacterMap({ord(letter): name for name, (letter, _, _) in GLYPHS.items() if letter})
font.setupGlyf({name: outline(boxes) for name, (_, _, boxes) in GLYPHS.items()})
font.setupHorizontalMetrics({name: (advance, 0) for name, (_, advance, _) in GLYPHS.items()})
font.setupHorizontalHeader(ascent=800, descent=-200)
font.setupNameTable({"familyName": "Steadyhand Squares", "styleName": "Regular", "psName": "SteadyhandSquares"})
font.setupOS2(sTypoAscender=800, sTypoDescender=-200, sxHeight=500, sCapHeight=700)
font.setupPost()
features = "feature kern { pos A V -100; } kern; feature liga { sub f i by f_i; } liga;"
addOpenTypeFeaturesFromString(font.font, features)
font.save(Path(__file__).with_name("squares.ttf"))
