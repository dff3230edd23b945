package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/operator"
)

// explainedKinds are the kinds that the service explains.
var explainedKinds = []string{"fleet", "alias", "compute", "process", "placement", "game-session", "ticket", "player", "party", "game-instance"}

func explained(kind string) bool { return slices.Contains(explainedKinds, kind) }

// loaders load what a page shows beside the explanation of its object, by kind.
var loaders = map[string]func(ctx context.Context, s Service, id string) ([]line, error){
	"fleet": fleetLines, "game-session": gameLines, "queue": queueLines, "player": playerLines,
}

// load loads a page.
func load(ctx context.Context, s Service, at operator.Named) (sheet, error) {
	switch at.Kind {
	case "":
		x, err := s.Overview(ctx)
		if err != nil {
			return nil, err
		}
		return &overviewSheet{now: x}, nil
	case itemKind:
		return &objectSheet{text: at.ID}, nil
	}
	x := &objectSheet{}
	var err error
	if lines := loaders[at.Kind]; lines != nil {
		if x.tables, err = lines(ctx, s, at.ID); err != nil {
			return nil, err
		}
	}
	if !explained(at.Kind) {
		return x, nil
	}
	x.text, err = s.Explain(ctx, at.Kind, at.ID)
	if _, refused := errors.AsType[*operator.Problem](err); refused && len(x.tables) > 0 { // such as a player whom player flow does not know
		return x, nil
	}
	return x, err
}

// objectSheet is a page about one object.
type objectSheet struct {
	text   string // its explanation
	tables []line // what is in it
}

// lines has the first sentences of the explanation, what is in the object, and the rest of the explanation.
func (x *objectSheet) lines(width int) (all []line) {
	why, rest, _ := strings.Cut(x.text, "\n\n")
	paragraphs := func(text string) {
		for part := range strings.Lines(text) {
			all = append(all, wrapped(strings.TrimSuffix(part, "\n"), width, plain, operator.Named{})...)
		}
	}
	paragraphs(why)
	all = append(all, x.tables...)
	if rest != "" {
		all = append(all, line{})
	}
	paragraphs(rest)
	return all
}

func fleetLines(ctx context.Context, s Service, id string) (all []line, err error) {
	x, err := s.Fleet(ctx, id)
	if err != nil {
		return nil, err
	}
	places := newTable("LOCATION", "STATUS", "PROCESSES", "FREE", "SESSIONS", "PLAYERS", "SEATS FREE")
	for i := range x.Places {
		p := &x.Places[i]
		how := plain
		if p.Why != "" {
			how = trouble
		}
		places.add(operator.Named{}, how, p.Location, p.Status, p.Processes, p.FreeProcesses, p.GameSessions, p.PlayersConnected+p.PlayersReserved, p.FreeSeats)
	}
	processes := newTable("PROCESS", "COMPUTE", "STANDING", "HEALTH", "PORT", "CONNECTED")
	for i := range x.Processes {
		p := &x.Processes[i]
		processes.add(operator.Named{Kind: "process", ID: p.ID}, plain, p.ID[strings.LastIndexByte(p.ID, '/')+1:], p.Compute, p.Standing, p.Health, p.Port, clock(p.Since))
	}
	games := newTable("GAME SESSION", "STATUS", "SEATS", "LOCATION", "CREATED", "NAME")
	for i := range x.GameSessions {
		g := &x.GameSessions[i]
		games.add(operator.Named{Kind: "game-session", ID: g.ID}, plain, g.ID[strings.LastIndexByte(g.ID, '/')+1:], g.Status, fmt.Sprintf("%d/%d", g.SeatsHeld, g.PlayersMax), g.Location, clock(g.Created), g.Name)
	}
	all = append(append(all, head("Locations")...), places.lines("none")...)
	all = append(append(all, head("Game sessions"+further(x.More))...), games.lines("none runs")...)
	return append(append(all, head("Server processes"+further(x.More))...), processes.lines("none is connected")...), nil
}

// further is behind the heading of lists that are not complete.
func further(more bool) string {
	if more {
		return " (not all are listed)"
	}
	return ""
}

func gameLines(ctx context.Context, s Service, id string) (all []line, err error) {
	x, err := s.GameSession(ctx, id)
	if err != nil {
		return nil, err
	}
	process := newTable("SERVER PROCESS")
	process.add(operator.Named{Kind: "process", ID: x.Process}, plain, x.Process[strings.LastIndexByte(x.Process, '/')+1:])
	players := newTable("PLAYER", "STATUS", "SINCE", "PLAYER SESSION")
	for _, p := range x.Players {
		players.add(operator.Named{Kind: "player", ID: p.Player}, plain, p.Player, p.Status, clock(p.Since), p.ID)
	}
	all = append(append(all, line{}), process.lines("none")...)
	return append(append(all, head("Players"+further(x.More))...), players.lines("none")...), nil
}

func queueLines(ctx context.Context, s Service, name string) (all []line, err error) {
	x, err := s.Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	destinations := newTable("DESTINATION")
	for _, d := range x.Destinations {
		to := operator.Named{}
		if _, id, ok := strings.Cut(d, ":fleet/"); ok {
			to = operator.Named{Kind: "fleet", ID: id}
		} else if _, id, ok := strings.Cut(d, ":alias/"); ok {
			to = operator.Named{Kind: "alias", ID: id}
		}
		destinations.add(to, plain, d[strings.LastIndexByte(d, ':')+1:])
	}
	waiting := newTable("PLACEMENT", "PLAYERS", "SINCE")
	for _, p := range x.Waiting {
		waiting.add(operator.Named{Kind: "placement", ID: p.ID}, plain, p.ID, p.Players, clock(p.Since))
	}
	all = append(append(all, head(fmt.Sprintf("Placements that wait: %d", x.Placements))...), waiting.lines("none")...)
	return append(append(all, head("Destinations")...), destinations.lines("none: placements wait until they time out")...), nil
}

func playerLines(ctx context.Context, s Service, id string) (all []line, err error) {
	x, err := s.Player(ctx, id)
	if err != nil {
		return nil, err
	}
	list := func(title string, sessions []operator.PlayerSessionLine) {
		t := newTable("PLAYER SESSION", "STATUS", "SINCE", "GAME SESSION")
		for _, p := range sessions {
			t.add(operator.Named{Kind: "game-session", ID: p.GameSession}, plain, p.ID, p.Status, clock(p.Since), p.GameSession[strings.LastIndexByte(p.GameSession, '/')+1:])
		}
		all = append(append(all, head(title)...), t.lines("none")...)
	}
	list("Player sessions now", x.Live)
	list("All player sessions, the oldest first"+further(x.More), x.Sessions)
	return all, nil
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
