;Header Start
;header_type: laser
;renderMethod: line
;work_speed(mm/minute): 1000
;Header End

; G-code START <<<
G90
G21
G0 X10 Y10 F3000
M3 P60 S153
G1 X40 Y10 F1000
G1 X40 Y30
G1 X10 Y30
G1 X10 Y10
M5
G0 X15 Y15 F3000
M3 P60 S153
G1 X35 Y25 F1000
M5
G0 X0 Y0
; G-code END <<<
