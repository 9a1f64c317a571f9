( GRBL-Plotter style: pen on the Z axis, spindle left on )
( Imported with the wish for a spindle )
G90 G54 G17 G94
G21
M3 S1000
G00 Z2.000
(<Figure nr="1">)
G00 X10.000 Y10.000
G01 Z-2.000 F200
G01 X40.000 F1000
Y30.000
X10.000
Y10.000
G00 Z2.000
(</Figure>)
(<Figure nr="2">)
G00 X15.000 Y15.000
G01 Z-2.000 F200
G01 X35.000 Y25.000 F1000
G00 Z2.000
M5
M30
