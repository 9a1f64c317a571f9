G20         ; Set units to inches
G90         ; Absolute positioning
G1 Z0.1 F40      ; Move to clearance level

;
; Operation:    0
; Name:
; Type:         Engrave
; Paths:        2
; Cut Depth:    0.02

; Path 0
; Rapid to initial position
G1 X0.393701 Y0.393701 F40
; plunge
G1 Z-0.02 F5
; cut
G1 X1.574803 Y0.393701 F40
G1 X1.574803 Y1.181102
G1 X0.393701 Y1.181102
G1 X0.393701 Y0.393701
; Retract
G1 Z0.1 F40

; Path 1
; Rapid to initial position
G1 X0.590551 Y0.590551 F40
; plunge
G1 Z-0.02 F5
; cut
G1 X1.377953 Y0.984252 F40
; Retract
G1 Z0.1 F40
M2
