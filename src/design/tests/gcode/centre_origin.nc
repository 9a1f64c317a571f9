; LightBurn with the origin in the centre: 10 mm more to the left than to the right
G21
G90
M4 S0
G0 X-20 Y-10
G1 X10 S300 F1000
G1 Y10
G1 X-20
G1 Y-10
G0 X-15 Y-5
G1 X5 Y5
M5 S0
M2
