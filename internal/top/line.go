package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/terminal"
)

// margin is at the beginning of each line that leads somewhere: the cursor is drawn there.
const margin = "  "

// line is a line of a page.
type line struct {
	text string // printable, without escape sequences
	look look
	to   operator.Named // that Enter leads to; empty: nothing
}

// look is how a line is drawn.
type look uint8

const (
	plain look = iota
	heading
	trouble
)

// sheet is the contents of a page, which it draws for a terminal of a width.
type sheet interface{ lines(width int) []line }

// head makes the heading of a section, with an empty line above it.
func head(text string) []line { return []line{{}, {text: text, look: heading}} }

// wrapped breaks a text into lines of a width, those after the first indented. All lead to the same.
func wrapped(text string, width int, how look, to operator.Named) (lines []line) {
	text = ansi.Wrap(terminal.Printable(text), max(width-len(margin), 10), "")
	for i, part := range strings.Split(text, "\n") {
		if i > 0 {
			part, to = margin+part, operator.Named{} // so that the cursor stops once at each object
		}
		lines = append(lines, line{part, how, to})
	}
	return lines
}

// table has rows of cells, which it draws in columns.
type table struct {
	heads []string
	rows  []row
}

type row struct {
	cells []string
	to    operator.Named
	look  look
}

func newTable(heads ...string) *table { return &table{heads: heads} }

func (t *table) add(to operator.Named, how look, cells ...any) {
	r := row{to: to, look: how}
	for _, c := range cells {
		r.cells = append(r.cells, terminal.Printable(fmt.Sprint(c)))
	}
	t.rows = append(t.rows, r)
}

// lines draws the table; a table without rows has a line that says so.
func (t *table) lines(none string) (lines []line) {
	if len(t.rows) == 0 {
		return []line{{text: margin + none}}
	}
	widths := make([]int, len(t.heads))
	for i, h := range t.heads {
		widths[i] = ansi.StringWidth(h)
		for _, r := range t.rows {
			widths[i] = max(widths[i], min(ansi.StringWidth(r.cells[i]), cellMost))
		}
	}
	join := func(cells []string) string {
		var b strings.Builder
		for i, c := range cells {
			c = ansi.Truncate(c, cellMost, "…")
			b.WriteString(margin + c)
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(c))))
		}
		return strings.TrimRight(b.String(), " ")
	}
	lines = append(lines, line{text: join(t.heads), look: heading})
	for _, r := range t.rows {
		lines = append(lines, line{join(r.cells), r.look, r.to})
	}
	return lines
}

// cellMost is how wide a cell is at most, so that one long name does not push the others off the screen.
const cellMost = 48

// ago says how long ago something was, in its largest unit.
func ago(at, now time.Time) string {
	switch d := now.Sub(at); {
	case at.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
