package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/musterhq/muster/internal/terminal"
)

// keys is the help, a line for each key.
var keys = []string{
	"up, down   to the line before or after that leads somewhere; also k and j",
	"enter      opens the line: a fleet, a game session, a player, what needs attention",
	"esc        back; also left",
	"/          finds any id or name: fleet, host, compute, server process, game",
	"           session, player session, player, party, ticket, placement, queue, alias",
	"page up, page down, home, end",
	"           scroll",
	"r          loads the page at once",
	"?          shows and hides these keys",
	"q          ends muster top; also Ctrl-C",
}

// View draws the screen: a title, the page, and a line for the search, for a lost connection, or for the keys.
func (m *model) View() tea.View {
	rows := []string{style(m.title(), ansi.Style{}.Bold(), m.width)}
	all, p := m.drawn(), m.page()
	switch {
	case m.help:
		for _, k := range keys {
			rows = append(rows, ansi.Truncate(k, m.width, "…"))
		}
	case p.sheet == nil && m.lost == nil:
		rows = append(rows, "Loading …")
	}
	if !m.help {
		for i := p.top; i < min(p.top+m.room(), len(all)); i++ {
			rows = append(rows, m.row(&all[i], i == p.cursor))
		}
	}
	rows = rows[:min(len(rows), m.height-2)]
	for len(rows) < m.height-2 {
		rows = append(rows, "")
	}
	rows = append(rows, m.state(), ansi.Truncate(m.bottom(), m.width, "…"))
	v := tea.NewView(strings.Join(rows, "\n"))
	v.AltScreen = true
	v.WindowTitle = "muster top"
	return v
}

// row draws a line of a page. Without colours the marks at its beginning and bold type still distinguish it.
func (m *model) row(x *line, here bool) string {
	text := x.text
	if here && x.to.Kind != "" {
		return style("> "+text[min(len(margin), len(text)):], ansi.Style{}.Reverse(true), m.width)
	}
	switch x.look {
	case heading:
		return style(text, ansi.Style{}.Bold(), m.width)
	case trouble:
		return style(text, ansi.Style{}.ForegroundColor(ansi.BasicColor(1)), m.width)
	}
	return ansi.Truncate(text, m.width, "…")
}

func style(text string, how ansi.Style, width int) string {
	return how.Styled(ansi.Truncate(text, width, "…"))
}

// title says where the page is.
func (m *model) title() string {
	parts := []string{"muster top"}
	for _, p := range m.pages[1:] {
		at := p.at.Kind + " " + p.at.ID
		if p.at.Kind == itemKind {
			at = "needs attention"
		}
		parts = append(parts, terminal.Printable(at))
	}
	title := strings.Join(parts, " > ")
	if over := ansi.StringWidth(title) - m.width; over > 0 && len(parts) > 2 { // the last one matters most
		title = parts[0] + " > … > " + parts[len(parts)-1]
	}
	return title
}

// state is the line about the connection, and about a search that found nothing.
func (m *model) state() string {
	red := ansi.Style{}.Bold().ForegroundColor(ansi.BasicColor(1))
	switch {
	case m.lost != nil && m.refused():
		return style(terminal.Printable("Not current since "+m.lostAt.Format("15:04:05")+": "+m.lost.Error()), red, m.width)
	case m.lost != nil:
		return style(terminal.Printable("CONNECTION LOST at "+m.lostAt.Format("15:04:05")+", trying again: "+m.lost.Error()), red, m.width)
	}
	return ansi.Truncate(terminal.Printable(m.notice), m.width, "…")
}

// bottom is the last line.
func (m *model) bottom() string {
	if m.searching {
		text := "Find: " + string(m.words)
		return ansi.TruncateLeft(text, max(0, ansi.StringWidth(text)-m.width+1), "") + "_"
	}
	position := ""
	if all := len(m.drawn()); all > m.room() {
		position = fmt.Sprintf("  lines %d-%d of %d", m.page().top+1, min(all, m.page().top+m.room()), all)
	}
	return "enter opens  esc back  / finds  ? keys  q ends" + position
}
