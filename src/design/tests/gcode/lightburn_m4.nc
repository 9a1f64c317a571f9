; LightBurn-like, GRBL device profile, absolute coords
; Bounds: X10 Y10 to X40 Y30
G00 G17 G40 G21 G54
G90
M4
; Cut @ 3000 mm/min, 20% power
M8
G0 X10Y10
; Layer C00
G1 X40S200F3000
G1 Y30
G1 X10
G1 Y10
G0 X15Y15
G1 X35Y25
M9
G1 S0
M5
G90
; return to user-defined finish pos
G0 X0Y0
M2
