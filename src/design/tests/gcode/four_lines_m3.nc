; what came out as one dot: M3 at the start, Z lifts
G21
G90
M3 S12000
G0 Z5
G0 X10 Y10
G1 Z-1 F100
G1 X40 F500
G1 Y30
G1 X10
G1 Y10
G0 Z5
M5
M30
