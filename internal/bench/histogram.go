package bench

import (
	"math/bits"
	"time"
)

// histogram counts durations in classes that are at most 1/64 wide, so that a quantile is off by less than 2 %.
type histogram struct {
	counts [58 << 6]uint32
	total  uint64
}

func (h *histogram) add(d time.Duration) {
	h.counts[class(uint64(max(d, 0)))]++
	h.total++
}

// class numbers the value's leading 7 bits; below 128 every value has its own.
func class(v uint64) int {
	shift := max(bits.Len64(v)-7, 0)
	return shift<<6 + int(v>>shift)
}

// classEnd is the largest value of a class.
func classEnd(c int) time.Duration {
	if c < 128 {
		return time.Duration(c)
	}
	shift := c>>6 - 1
	return time.Duration((c-shift<<6+1)<<shift - 1)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range &other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile is the duration that a share q of all stay within; 0 when there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	seen := uint64(0)
	for c, n := range &h.counts {
		if seen += uint64(n); n > 0 && seen > min(rank, h.total-1) {
			return classEnd(c)
		}
	}
	return 0
}
