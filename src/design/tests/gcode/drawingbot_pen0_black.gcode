;DrawingBot style, Start
G21 ;Set programming units to mm
G90 ;Absolute positioning
G28 X0 Y0 ;Home
G0 X10.0 Y10.0
G1 X40.0 Y10.0 F6000
G1 X40.0 Y30.0
G1 X10.0 Y30.0
G1 X10.0 Y10.0
G0 X15.0 Y15.0
G1 X35.0 Y25.0
G0 X0 Y0
