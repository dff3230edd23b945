package console

import (
	"math"
	"strconv"
)

// readable formats a value of a graph for people, with at most four significant digits.
func readable(value float64, unit string) string {
	short := func(x float64) string {
		if math.Abs(x) >= 1000 {
			return strconv.FormatFloat(x, 'f', 0, 64)
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	switch {
	case math.IsNaN(value):
		return "–"
	case unit == "Percent":
		return short(value) + " %"
	case unit == "Seconds" && value != 0 && math.Abs(value) < 1:
		return short(value*1000) + " ms"
	case unit == "Seconds":
		return short(value) + " s"
	case unit == "Bytes":
		for _, u := range []string{" B", " KiB", " MiB", " GiB"} {
			if math.Abs(value) < 1024 {
				return short(value) + u
			}
			value /= 1024
		}
		return short(value) + " TiB"
	}
	return short(value)
}
