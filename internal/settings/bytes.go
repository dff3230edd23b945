package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size, written as a number with B, KiB, MiB or GiB.
type Bytes int64

var units = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}} // "B" last: the others end with it

func (b Bytes) String() string {
	for _, unit := range units {
		if b != 0 && int64(b)%unit.size == 0 {
			return strconv.FormatInt(int64(b)/unit.size, 10) + unit.name
		}
	}
	return "0B"
}

// UnmarshalText implements encoding.TextUnmarshaler. Zero needs no unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*b = 0
		return nil
	}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(string(text), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.size {
			break
		}
		*b = Bytes(n * unit.size)
		return nil
	}
	return fmt.Errorf("size %q: want a whole number with B, KiB, MiB or GiB, such as 64MiB", text)
}
