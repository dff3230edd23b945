package top

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/musterhq/muster/internal/operator"
)

// model is what the terminal shows. It is a bubbletea model: Update gets keys and what was loaded, View draws.
type model struct {
	ctx     context.Context
	service Service
	every   time.Duration // between two loads

	pages         []page // the one that is shown is the last
	width, height int
	help          bool

	request int       // number of the newest load; answers to earlier ones are dropped
	lostAt  time.Time // when loading began to fail; zero: the page is current
	lost    error     // why

	searching bool
	words     []rune // of the search
	notice    string // about the last search
}

// page is a page that was opened.
type page struct {
	at     operator.Named
	sheet  sheet // nil: not loaded yet
	cursor int   // index among the lines
	top    int   // index of the first line on the screen

	drawn []line // what the sheet draws for a terminal of this width; nil: not drawn yet
	width int
}

// Messages to the model.
type (
	loaded struct {
		request int
		sheet   sheet
		err     error
		at      time.Time
	}
	found struct {
		at  *operator.Named
		err error
	}
	due struct{ request int } // for the next load
)

// patience is how long a service may take to answer before the connection counts as lost.
const patience = 10 * time.Second

// wordsMost is how long a search is at most, as the service takes it.
const wordsMost = 1024

// narrowest is the smallest terminal that is drawn for; a smaller one shows a part of it.
const narrowest, lowest = 20, 4

func newModel(ctx context.Context, s Service, every time.Duration) *model {
	return &model{ctx: ctx, service: s, every: every, pages: []page{{}}, width: 80, height: 24}
}

func (m *model) Init() tea.Cmd { return m.load() }

func (m *model) page() *page { return &m.pages[len(m.pages)-1] }

// load begins to load the page that is shown. Answers to earlier loads do not count any more.
func (m *model) load() tea.Cmd {
	m.request++
	request, at := m.request, m.page().at
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		x, err := load(ctx, m.service, at)
		return loaded{request, x, err, time.Now()}
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, narrowest), max(msg.Height, lowest)
		m.settle(0)
	case loaded:
		return m, m.takes(msg)
	case found:
		return m, m.goes(msg)
	case due:
		if msg.request == m.request {
			return m, m.load()
		}
	case tea.PasteMsg:
		if m.searching {
			m.types(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// takes shows what was loaded, or that loading failed, and has the page loaded again in a while.
func (m *model) takes(x loaded) tea.Cmd {
	if x.request != m.request {
		return nil
	}
	if x.err != nil {
		if m.lost == nil {
			m.lostAt = x.at
		}
		m.lost = x.err
	} else {
		m.lost = nil
		p := m.page()
		was, again := p.sheet.(*overviewSheet)
		if now, ok := x.sheet.(*overviewSheet); ok && again {
			now.before = was.now
		}
		p.sheet, p.drawn = x.sheet, nil
		m.settle(0)
	}
	request := m.request
	return tea.Tick(m.every, func(time.Time) tea.Msg { return due{request} })
}

// press handles a key.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.searching:
		return m.pressInSearch(k)
	case m.help: // any key closes it
		m.help = false
		return nil
	}
	m.notice = ""
	room := m.room()
	switch key {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
	case "/":
		m.searching, m.words = true, nil
	case "r":
		return m.load()
	case "up", "k":
		m.moves(-1)
	case "down", "j":
		m.moves(1)
	case "pgup":
		m.settle(-room)
	case "pgdown", "space":
		m.settle(room)
	case "home", "g":
		m.page().cursor, m.page().top = 0, 0
		m.settle(0)
	case "end", "G":
		m.settle(len(m.drawn()))
	case "enter", "right", "l":
		if all, p := m.drawn(), m.page(); p.cursor < len(all) && all[p.cursor].to.Kind != "" {
			return m.opens(all[p.cursor].to)
		}
	case "esc", "left", "h", "backspace":
		if len(m.pages) > 1 {
			m.pages = m.pages[:len(m.pages)-1]
			m.lost = nil
			return m.load()
		}
	}
	return nil
}

func (m *model) pressInSearch(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.searching = false
	case "backspace":
		m.words = m.words[:max(0, len(m.words)-1)]
	case "ctrl+u":
		m.words = nil
	case "enter":
		m.searching = false
		words := strings.TrimSpace(string(m.words))
		if words == "" {
			return nil
		}
		m.notice = "Looking for " + words + " …"
		return func() tea.Msg {
			ctx, cancel := context.WithTimeout(m.ctx, patience)
			defer cancel()
			at, err := m.service.Find(ctx, words)
			return found{at, err}
		}
	default:
		m.types(k.Text)
	}
	return nil
}

// types adds text to the search.
func (m *model) types(text string) {
	for _, r := range text {
		if unicode.IsPrint(r) && len(m.words) < wordsMost {
			m.words = append(m.words, r)
		}
	}
}

// goes opens what a search has found.
func (m *model) goes(x found) tea.Cmd {
	m.notice = ""
	refusal, refused := errors.AsType[*operator.Problem](x.err)
	switch {
	case refused:
		m.notice = refusal.Message
	case x.err != nil:
		m.notice = "The search failed: " + x.err.Error()
	default:
		return m.opens(*x.at)
	}
	return nil
}

func (m *model) opens(at operator.Named) tea.Cmd {
	m.pages = append(m.pages, page{at: at})
	m.lost = nil
	return m.load()
}

// refused reports whether the service answers, and says no.
func (m *model) refused() bool {
	_, refused := errors.AsType[*operator.Problem](m.lost)
	return refused
}

// drawn are the lines of the page that is shown.
func (m *model) drawn() []line {
	p := m.page()
	if p.sheet != nil && (p.drawn == nil || p.width != m.width) {
		p.drawn, p.width = p.sheet.lines(m.width), m.width
	}
	return p.drawn
}

// room is how many lines of a page the screen has room for, beside title and keys.
func (m *model) room() int { return max(1, m.height-3) }

// moves puts the cursor on the next line that leads somewhere. While that is not on the screen, it scrolls by a line, so that what is between can be read.
func (m *model) moves(by int) {
	all, p, room := m.drawn(), m.page(), m.room()
	next := min(max(p.cursor, p.top-1), p.top+room) + by // the cursor may have been scrolled off the screen
	for next >= 0 && next < len(all) && all[next].to.Kind == "" {
		next += by
	}
	if next < p.top || next >= p.top+room {
		p.top = min(max(0, p.top+by), max(0, len(all)-room))
	}
	if next >= p.top && next < min(p.top+room, len(all)) {
		p.cursor = next
	}
}

// settle scrolls by so many lines, and puts the cursor on a line on the screen that leads somewhere, if there is one.
func (m *model) settle(by int) {
	all, p, room := m.drawn(), m.page(), m.room()
	p.top = min(max(0, p.top+by), max(0, len(all)-room))
	if p.cursor >= p.top && p.cursor < min(p.top+room, len(all)) && all[p.cursor].to.Kind != "" {
		return
	}
	for i := p.top; i < min(p.top+room, len(all)); i++ {
		if all[i].to.Kind != "" {
			p.cursor = i
			return
		}
	}
}
