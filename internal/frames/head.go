package frames

import (
	"encoding/binary"
	"fmt"
)

const (
	opContinuation = 0x0 // the opcodes that the service does not send; see Text
	opBinary       = 0x2

	bitFIN, bitsRSV, bitsOpcode = 0x80, 0x70, 0x0F // of the first byte
	bitMask                     = 0x80             // of the second

	controlMost = 125 // payload bytes of a control frame
)

// head is the header in front of a frame's payload.
type head struct {
	first   byte
	size    int // size of the head; 0 while it is incomplete
	payload int
	mask    [4]byte
}

// head parses the head of the first frame in b. It checks each byte as soon as it is there, so that nothing of a frame that
// will be refused is buffered. RFC 6455, 5.2 to 5.5.
func (r *Reader) head(b []byte) (h head, wrong *Violation) {
	if len(b) < 1 {
		return h, nil
	}
	h.first = b[0]
	if wrong := r.checkFirst(b[0]); wrong != nil || len(b) < 2 {
		return h, wrong
	}
	control := b[0]&bitsOpcode >= Close
	size, n := 2+4, uint64(b[1]&^bitMask)
	switch {
	case b[1]&bitMask == 0:
		return h, &Violation{CodeProtocol, "a frame without a mask"}
	case control && n > controlMost:
		return h, &Violation{CodeProtocol, "a control frame of more than 125 bytes"}
	case n == 126:
		size += 2
	case n == 127:
		size += 8
	}
	if len(b) < size {
		return h, nil
	}
	least := uint64(0) // a smaller length would have had a shorter encoding
	switch n {
	case 126:
		n, least = uint64(binary.BigEndian.Uint16(b[2:])), 126
	case 127:
		n, least = binary.BigEndian.Uint64(b[2:]), 1<<16
	}
	most := uint64(r.config.MessageMax)
	switch {
	case n < least:
		return h, &Violation{CodeProtocol, fmt.Sprintf("a length of %d in a longer form than necessary", n)}
	case control: // small in any case
	case n > most:
		return h, &Violation{CodeTooLarge, fmt.Sprintf("a frame of %d bytes, want at most %d", n, most)}
	case n+uint64(len(r.whole)) > most:
		return h, &Violation{CodeTooLarge, fmt.Sprintf("a message of more than %d bytes", most)}
	}
	h.size, h.payload, h.mask = size, int(n), [4]byte(b[size-4:size])
	return h, nil
}

// checkFirst checks the first byte of a frame: its opcode, and whether it may occur now.
func (r *Reader) checkFirst(first byte) *Violation {
	last, opcode := first&bitFIN != 0, first&bitsOpcode
	switch {
	case first&bitsRSV != 0:
		return &Violation{CodeProtocol, "a frame of an extension that was not agreed on"}
	case opcode > Pong || opcode > opBinary && opcode < Close:
		return &Violation{CodeProtocol, fmt.Sprintf("a frame with the opcode %d", opcode)}
	case opcode >= Close && !last:
		return &Violation{CodeProtocol, "a control frame in fragments"}
	case opcode < Close && (opcode == opContinuation) != (r.opened != 0):
		return &Violation{CodeProtocol, "a fragment of no message, or a message within one"}
	}
	return nil
}
