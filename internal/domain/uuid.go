package domain

import "encoding/hex"

// UUID is the random part of an identifier that the service makes ("psess-…", "fleet-…").
type UUID [16]byte

// IsZero reports whether u was never set.
func (u UUID) IsZero() bool { return u == UUID{} }

// String returns the usual form, 8-4-4-4-12 lower-case hexadecimal digits.
func (u UUID) String() string { return string(u.Append(make([]byte, 0, 36))) }

// Append appends the usual form to b.
func (u UUID) Append(b []byte) []byte {
	b = hex.AppendEncode(b, u[:4])
	for _, part := range [][]byte{u[4:6], u[6:8], u[8:10], u[10:]} {
		b = append(b, '-')
		b = hex.AppendEncode(b, part)
	}
	return b
}

// ParseUUID reads the usual form, in lower case only: identifiers of the service are compared as text elsewhere.
func ParseUUID(s string) (UUID, bool) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	at := 0
	for i := 0; i < len(s); {
		if s[i] == '-' {
			i++
			continue
		}
		hi, okHi := hexDigit(s[i])
		lo, okLo := hexDigit(s[i+1])
		if !okHi || !okLo {
			return u, false
		}
		u[at] = hi<<4 | lo
		at++
		i += 2
	}
	return u, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
