package linkclient

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
)

// Opcodes of RFC 6455, 5.2.
const (
	opText   = 0x1
	opBinary = 0x2
	opClose  = 0x8
	opPing   = 0x9
	opPong   = 0xA
)

const (
	// headSpace is the size of the longest frame header: 2 bytes, an 8-byte length, and the mask.
	headSpace = 14

	readBuffer = 1 << 10

	// keptBuffer is the largest message buffer that is kept between messages.
	keptBuffer = 16 << 10

	messageMax = 32_000_000 // the C++ SDK's limit
)

// beginFrame reserves space for the header; the payload is appended after it.
func beginFrame(b []byte) []byte { return append(b, make([]byte, headSpace)...) }

// endFrame writes the header in front of the payload. The mask is all zeros, which masks nothing and is as valid as any
// other. It saves the load generator's processor time.
func endFrame(b []byte, opcode byte) []byte {
	n := len(b) - headSpace
	head := 6
	switch {
	case n > 0xFFFF:
		head = 14
	case n > 125:
		head = 8
	}
	frame := b[headSpace-head:]
	frame[0] = 0x80 | opcode
	switch head {
	case 6:
		frame[1] = 0x80 | byte(n)
	case 8:
		frame[1] = 0x80 | 126
		binary.BigEndian.PutUint16(frame[2:], uint16(n))
	case 14:
		frame[1] = 0x80 | 127
		binary.BigEndian.PutUint64(frame[2:], uint64(n))
	}
	clear(frame[head-4 : head])
	return frame
}

// reader reads frames from the connection.
type reader struct {
	br    *bufio.Reader
	pongs *atomic.Int64
}

func newReader(br *bufio.Reader) reader { return reader{br, new(atomic.Int64)} }

// messages reads until the connection ends or control returns an error. A message's bytes are valid only during the call.
func (r reader) messages(message func([]byte), control func(opcode byte, payload []byte) error) error {
	var buf []byte
	for {
		opcode, n, err := r.head()
		if err != nil {
			return err
		}
		if cap(buf) > keptBuffer {
			buf = nil
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := io.ReadFull(r.br, buf); err != nil {
			return err
		}
		switch {
		case opcode == opText:
			message(buf)
		case opcode == opPong:
			r.pongs.Add(1)
		case opcode >= 0x8:
			if err := control(opcode, buf); err != nil {
				return err
			}
		default:
			return fmt.Errorf("frame with opcode %d: the service must send single text frames only", opcode)
		}
	}
}

func (r reader) head() (opcode byte, n int, err error) {
	var b [8]byte
	if _, err := io.ReadFull(r.br, b[:2]); err != nil {
		return 0, 0, err
	}
	opcode = b[0] & 0xF
	switch {
	case b[0]&0xF0 != 0x80:
		return 0, 0, fmt.Errorf("frame head %#x: fragmented or with an extension", b[0])
	case b[1]&0x80 != 0:
		return 0, 0, fmt.Errorf("frame from the service is masked")
	}
	length := uint64(b[1])
	switch length {
	case 126:
		_, err = io.ReadFull(r.br, b[:2])
		length = uint64(binary.BigEndian.Uint16(b[:2]))
	case 127:
		_, err = io.ReadFull(r.br, b[:8])
		length = binary.BigEndian.Uint64(b[:8])
	}
	if err == nil && length > messageMax {
		err = fmt.Errorf("frame of %d bytes, at most %d arrive in every SDK", length, messageMax)
	}
	return opcode, int(length), err
}
