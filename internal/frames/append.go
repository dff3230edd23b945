package frames

import "encoding/binary"

// Opcodes of RFC 6455, 5.2.
const (
	Text  = 0x1
	Close = 0x8
	Ping  = 0x9
	Pong  = 0xA
)

// Append appends one unmasked frame, whose payload comes in parts.
func Append(b []byte, opcode byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = append(b, 0x80|opcode)
	switch {
	case n > 0xFFFF:
		b = append(b, 127)
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	case n > 125:
		b = append(b, 126)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b = append(b, byte(n))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
