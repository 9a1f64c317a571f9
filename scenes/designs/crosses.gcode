; Registration cross and circle, 40 by 40 mm, for checking scale, squareness and backlash.
G21 ; millimetres
G90 ; absolute
; long cross
G0 X5 Y20
G1 X35 Y20 F2400
G0 X20 Y35
G1 X20 Y5
; circle of 20 mm
G0 X30 Y20
G2 X30 Y20 I-10 J0
; corner crosses
G0 X0 Y3
G1 X6 Y3
G0 X3 Y0
G1 X3 Y6
G0 X34 Y3
G1 X40 Y3
G0 X37 Y0
G1 X37 Y6
G0 X34 Y37
G1 X40 Y37
G0 X37 Y34
G1 X37 Y40
G0 X0 Y37
G1 X6 Y37
G0 X3 Y34
G1 X3 Y40
M2
