package repository

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
)

// stateSum is a checksum of a state that does not depend on the order of its parts, because a replayed state has them in another order than
// the state with which it is compared. It is the sum of the SHA-256 of all parts, as 256-bit numbers.
type stateSum struct {
	sum   [4]uint64
	rest  []byte // the beginning of a part
	group []byte // a game session and its player sessions, which stay together in the order of their creation
}

// partPlayer is the kind of a part that belongs to the previous one: PlayerSession of message SnapshotPart in proto/journal.proto.
const partPlayer = 9

func (s *stateSum) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	at := 0
	for {
		length, n := binary.Uvarint(s.rest[at:])
		if n < 0 || n > 0 && length == 0 {
			return 0, errors.New("the state is not a sequence of parts")
		}
		if n == 0 || length > uint64(len(s.rest)-at-n) {
			break
		}
		s.part(s.rest[at+n : at+n+int(length)])
		at += n + int(length)
	}
	s.rest = append(s.rest[:0], s.rest[at:]...)
	return len(p), nil
}

func (s *stateSum) part(p []byte) {
	if p[0]>>3 != partPlayer {
		s.add()
	}
	s.group = append(s.group, p...)
}

func (s *stateSum) add() {
	if len(s.group) == 0 {
		return
	}
	sum, carry := sha256.Sum256(s.group), uint64(0)
	for i := range s.sum {
		s.sum[i], carry = bits.Add64(s.sum[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
	s.group = s.group[:0]
}

// String returns the sum, after the end of the state.
func (s *stateSum) String() string {
	s.add()
	var b []byte
	for _, x := range s.sum {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return hex.EncodeToString(b)
}
