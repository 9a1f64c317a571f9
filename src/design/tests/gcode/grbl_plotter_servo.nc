( GRBL-Plotter style: pen on a servo, PWM by S )
G90 G21 (use absolute, metric)
M3 S800 (PU)
G4 P0.15
( Figure 1 )
G0 X10 Y10
M3 S200 (PD)
G4 P0.2
G1 X40 F2000
G1 Y30
G1 X10
G1 Y10
M3 S800 (PU)
G4 P0.15
( Figure 2 )
G0 X30 Y20
M3 S200 (PD)
G4 P0.2
G2 X30 Y20 I-5 J0
M3 S800 (PU)
G4 P0.15
M5
M30
