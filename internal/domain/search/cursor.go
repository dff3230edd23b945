package search

import (
	"strconv"
	"strings"
)

// Cursor is what a page token holds: the order's Start and the place of the last result.
func Cursor(start uint64, p Place) string {
	none := "-"
	if p.None {
		none = "x"
	}
	return strings.Join([]string{
		strconv.FormatUint(start, 36), none, strconv.FormatInt(p.Number, 36), strconv.FormatInt(p.Created, 36),
		strconv.Itoa(len(p.Text)), p.Text + p.ID,
	}, " ")
}

// ParseCursor reads a Cursor.
func ParseCursor(s string) (start uint64, p Place, ok bool) {
	parts := strings.SplitN(s, " ", 6)
	if len(parts) != 6 {
		return 0, p, false
	}
	start, err1 := strconv.ParseUint(parts[0], 36, 64)
	number, err2 := strconv.ParseInt(parts[2], 36, 64)
	created, err3 := strconv.ParseInt(parts[3], 36, 64)
	n, err4 := strconv.Atoi(parts[4])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || n < 0 || n > len(parts[5]) {
		return 0, p, false
	}
	return start, Place{parts[1] == "x", number, parts[5][:n], created, parts[5][n:]}, true
}
