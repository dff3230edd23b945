package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/musterhq/muster/internal/waittest"
)

// screen is a terminal in which a program runs, with the content that a person would see. It implements xterm's sequences for moving the cursor and deleting; it ignores colors.
type screen struct {
	t    *testing.T
	pty  *os.File
	done chan error // receives the result of the program

	mu      sync.Mutex
	rows    [][]rune
	x, y    int
	first   int    // row of the region that scrolls
	last    int    // row of it
	raw     []byte // everything that the program wrote
	unknown string // the first sequence that the screen does not know
}

// newScreen runs a program in a terminal of a size.
func newScreen(t *testing.T, width, height int, cmd *exec.Cmd) *screen {
	t.Helper()
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	must(t, err)
	s := &screen{t: t, pty: file, done: make(chan error, 1)}
	s.sized(width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	go func() {
		err := cmd.Wait()
		<-read // the kernel ends reading when the program has ended
		s.done <- err
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		<-read
		file.Close()
		if t.Failed() {
			t.Logf("the screen:\n%s", s.text())
		}
	})
	return s
}

// sized clears the screen and sets its size.
func (s *screen) sized(width, height int) {
	s.rows, s.x, s.y, s.first, s.last = make([][]rune, height), 0, 0, 0, height-1
	for i := range s.rows {
		s.rows[i] = []rune(strings.Repeat(" ", width))
	}
}

// resize changes the size of the terminal; the kernel notifies the program.
func (s *screen) resize(width, height int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sized(width, height)
	must(s.t, pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}))
}

// press sends keys.
func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := s.pty.WriteString(keys)
	must(s.t, err)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, r := range s.rows {
		lines = append(lines, strings.TrimRight(string(r), " "))
	}
	return strings.Join(lines, "\n")
}

// shows waits until the screen shows all texts.
func (s *screen) shows(parts ...string) {
	s.t.Helper()
	waittest.Until(s.t, strings.Join(parts, ", ")+" on the screen", func() bool {
		text := s.text()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	})
}

func (s *screen) read() {
	buffer, rest := make([]byte, 4096), []byte{}
	for {
		n, err := s.pty.Read(buffer)
		s.mu.Lock()
		s.raw = append(s.raw, buffer[:n]...)
		rest = s.draw(append(rest, buffer[:n]...))
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// draw interprets a program's output, and returns the beginning of an incomplete sequence.
func (s *screen) draw(b []byte) (rest []byte) {
	for len(b) > 0 {
		switch {
		case b[0] == 0x1b:
			n := sequence(b)
			if n == 0 {
				return b
			}
			s.carryOut(string(b[1:n]))
			b = b[n:]
		case b[0] < ' ':
			s.control(b[0])
			b = b[1:]
		case !utf8.FullRune(b):
			return b
		default:
			r, n := utf8.DecodeRune(b)
			if s.x < len(s.rows[s.y]) {
				s.rows[s.y][s.x] = r
			}
			s.x++
			b = b[n:]
		}
	}
	return nil
}

func (s *screen) control(c byte) {
	switch c {
	case '\r':
		s.x = 0
	case '\n':
		if s.y == s.last {
			s.up(s.first, 1)
		} else {
			s.y = min(s.y+1, len(s.rows)-1)
		}
	case '\b':
		s.x = max(0, s.x-1)
	case '\t':
		s.x = (s.x/8 + 1) * 8
	}
}

// up moves the rows from one to the end of the region up; new rows are empty.
func (s *screen) up(from, by int) {
	for range min(by, s.last-from+1) {
		copy(s.rows[from:s.last], s.rows[from+1:s.last+1])
		s.rows[s.last] = []rune(strings.Repeat(" ", len(s.rows[0])))
	}
}

// down moves the rows from one to the end of the region down.
func (s *screen) down(from, by int) {
	for range min(by, s.last-from+1) {
		copy(s.rows[from+1:s.last+1], s.rows[from:s.last])
		s.rows[from] = []rune(strings.Repeat(" ", len(s.rows[0])))
	}
}

// sequence returns the length of the escape sequence at the beginning of b; 0: it is incomplete.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == '\\' && b[i-1] == 0x1b {
				return i + 1
			}
		}
		return 0
	case '(', ')':
		if len(b) < 3 {
			return 0
		}
		return 3
	}
	return 2
}

// carryOut executes an escape sequence.
func (s *screen) carryOut(text string) {
	last := text[len(text)-1]
	if text[0] != '[' {
		switch {
		case text == "M" && s.y == s.first:
			s.down(s.first, 1)
		case text == "M":
			s.y = max(0, s.y-1)
		case text == "D":
			s.control('\n')
		}
		return
	}
	if strings.ContainsAny(text[1:len(text)-1], "?>=<$ ") || strings.IndexByte("mhlnctqu", last) >= 0 {
		return // modes, colours and questions
	}
	numbers := []int{}
	for n := range strings.SplitSeq(text[1:len(text)-1], ";") {
		i, _ := strconv.Atoi(n) // an absent number is 0
		numbers = append(numbers, i)
	}
	n := max(1, numbers[0])
	width, height := len(s.rows[0]), len(s.rows)
	blank := func(y, from, to int) {
		for x := from; x < min(to, width); x++ {
			s.rows[y][x] = ' '
		}
	}
	switch last {
	case 'A':
		s.y -= n
	case 'B', 'e':
		s.y += n
	case 'C', 'a':
		s.x += n
	case 'D':
		s.x -= n
	case 'E':
		s.x, s.y = 0, s.y+n
	case 'F':
		s.x, s.y = 0, s.y-n
	case 'G', '`':
		s.x = n - 1
	case 'd':
		s.y = n - 1
	case 'H', 'f':
		s.y, s.x = n-1, 0
		if len(numbers) > 1 {
			s.x = max(1, numbers[1]) - 1
		}
	case 'I':
		s.x = (s.x/8 + n) * 8
	case 'Z':
		s.x = max(0, ((s.x+7)/8-n)*8)
	case 'X':
		blank(s.y, s.x, s.x+n)
	case 'K':
		from, to := s.x, width
		if numbers[0] > 0 {
			from, to = 0, s.x+1
		}
		if numbers[0] == 2 {
			to = width
		}
		blank(s.y, from, to)
	case 'J':
		for y := range s.rows {
			switch {
			case numbers[0] == 2, numbers[0] == 0 && y > s.y, numbers[0] == 1 && y < s.y:
				blank(y, 0, width)
			case numbers[0] == 0 && y == s.y:
				blank(y, s.x, width)
			case numbers[0] == 1 && y == s.y:
				blank(y, 0, s.x+1)
			}
		}
	case 'M':
		s.up(s.y, n)
	case 'L':
		s.down(s.y, n)
	case 'P':
		row := s.rows[s.y]
		from := min(s.x, width)
		copy(row[from:], row[min(width, from+n):])
		blank(s.y, max(from, width-n), width)
	case '@':
		row := s.rows[s.y]
		from := min(s.x, width)
		copy(row[min(width, from+n):], append([]rune{}, row[from:]...))
		blank(s.y, from, from+n)
	case 'b':
		for range n {
			if s.x > 0 && s.x < width {
				s.rows[s.y][s.x] = s.rows[s.y][s.x-1]
			}
			s.x++
		}
	case 'S':
		s.up(s.first, n)
	case 'T':
		s.down(s.first, n)
	case 'r':
		s.x, s.y, s.first, s.last = 0, 0, n-1, height-1
		if len(numbers) > 1 && numbers[1] > 0 {
			s.last = min(numbers[1], height) - 1
		}
	default:
		if s.unknown == "" {
			s.unknown = text
		}
	}
	s.x, s.y = max(0, s.x), min(max(0, s.y), height-1)
}
