package cell_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/sim/canon"
)

// TestStories plays the scripts of matchmaking, of player flow, and of the races of docs/spec/reconnect.md#races. The README
// beside them explains their format. After every command it checks the invariants of player flow. At the end of a script it checks that
// a replay of its journal and a restored snapshot give the same state.
func TestStories(t *testing.T) {
	for _, dir := range []string{"matchmaking", "playerflow", "races"} {
		datadriven.Walk(t, "testdata/"+dir, func(t *testing.T, path string) {
			s := &story{t: t, withFlow: dir != "matchmaking"}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s.d, s.out = d, &strings.Builder{}
				for i, line := range append([]string{d.FullCmd()}, strings.Split(d.Input, "\n")...) {
					if i > 0 && line == "" {
						continue
					}
					verb, args, err := datadriven.ParseLine(line)
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					s.play(verb, words{s, args})
				}
				return s.out.String()
			})
			if s.cell != nil {
				s.checkReplay()
			}
		})
	}
}

const (
	storyBegan   = domain.Time(1_700_000_000_000)
	storyFleet   = "fleet-1"
	storyHost    = "host"
	storyHome    = "custom-home"
	storySeats   = 4 // of a game session for which a script names no number
	storyAccount = "arn:aws:gamelift:us-east-1::"
)

// story is a running script: a cell, a clock that the script moves, and the names of all records that were made.
type story struct {
	t        *testing.T
	d        *datadriven.TestData
	out      *strings.Builder
	withFlow bool
	quiet    bool

	cell    *cell.Cell
	config  cell.Config
	now     domain.Time
	down    time.Duration // how long the service was down: contact deadlines are that much later
	journal [][]byte
	seed    uint64
	stream  uint64

	ids       map[string]domain.UUID           // what the script calls things: party1, game1, ps1
	names     map[domain.UUID]string           // the reverse
	kinds     map[string]int                   // how many of a kind have a name
	logins    map[string][]flow.LoginSessionID // login sessions of a player, the oldest first
	server    map[session.ID]string            // of a game session: its process
	hosted    map[string]session.ID            // of a process: the game session that it got last
	ticket    map[uint64]string                // by number
	ticketIDs map[string]string                // by name
	seen      map[string]uint64                // number of the last event that a player got before its stream was lost
	missed    map[string]uint64                // and of the last one that there was when the stream came back
	shown     map[string]string                // what was printed of a record last, so that it is printed only when it differs
}

// begin makes a cell with one host, one queue for game sessions, "q", and nothing else.
func (s *story) begin(options *flow.Config) {
	s.ids, s.names, s.kinds = map[string]domain.UUID{}, map[domain.UUID]string{}, map[string]int{}
	s.logins, s.server, s.hosted = map[string][]flow.LoginSessionID{}, map[session.ID]string{}, map[string]session.ID{}
	s.ticketIDs = map[string]string{}
	s.ticket, s.shown, s.seen, s.missed = map[uint64]string{}, map[string]string{}, map[string]uint64{}, map[string]uint64{}
	s.config = cell.DefaultConfig()
	if s.withFlow {
		s.config.PlayerFlow.Flow = options
	} else {
		s.config.Notify = &notice.Notify{Bus: true, Max: 100, Age: time.Hour}
	}
	s.cell, s.now = cell.New(s.config), storyBegan
	s.quietly(
		&hosting.CreateLocation{Name: storyHome, Region: "us-east-1"},
		&hosting.CreateFleet{Fleet: fleet.Fleet{ID: storyFleet, Region: "us-east-1"}, Locations: []string{storyHome}},
		&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: storyFleet, Name: storyHost, Location: storyHome, IPAddress: "127.0.0.1"}},
		&hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Timeout: 10 * time.Minute, Destinations: []string{storyAccount + "fleet/" + storyFleet}}},
	)
}

// play executes one line and prints its effects.
func (s *story) play(verb string, a words) {
	if s.cell == nil {
		options := flow.DefaultConfig()
		if verb == "options" {
			options = a.options(options)
		}
		s.begin(&options)
		if verb == "options" {
			return
		}
	}
	s.quiet = a.has("quiet")
	before := s.out.Len()
	if look, ok := storyLooks[verb]; ok {
		look(s, a)
		return
	}
	make, ok := storyCommands[verb]
	if !ok {
		s.d.Fatalf(s.t, "there is no command %q", verb)
	}
	for _, cmd := range make(s, a) {
		s.do(cmd)
	}
	if !s.quiet && s.out.Len() == before {
		fmt.Fprintln(s.out, "nothing changes")
	}
}

// do executes a command and prints its events, or the reason of its refusal.
func (s *story) do(cmd kernel.Command) {
	s.seed++
	env := kernel.Env{Now: s.now, Number: uint64(len(s.journal)) + 1, Follow: kernel.AllKinds()}
	binary.BigEndian.PutUint64(env.Seed[8:], s.seed)
	emitted, err := s.cell.Execute(cmd, &env)
	if emitted {
		s.journal = append(s.journal, env.Batch)
	}
	if attached, ok := cmd.(*playerflow.AttachStream); ok && err == nil {
		s.printReplay(attached) // what the stream begins with goes before what follows from its coming
	}
	s.printEvents(env.Events)
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		code := r.Reason.String()
		if _, ok := errors.AsType[*flow.Refusal](err); ok {
			code = string(flow.CodeOf(err))
		}
		s.printf("refused %s: %s", code, r.Detail)
	} else if err != nil {
		s.d.Fatalf(s.t, "%T: %v", cmd, err)
	}
	s.printResult(cmd, err)
	v := s.cell.View()
	if broken := v.Audit(); len(broken) > 0 {
		s.d.Fatalf(s.t, "after %T: %v", cmd, broken)
	}
}

// quietly executes commands that only prepare a script.
func (s *story) quietly(all ...kernel.Command) {
	was := s.quiet
	s.quiet = true
	for _, cmd := range all {
		s.do(cmd)
	}
	s.quiet = was
}

// wait lets time pass, and handles every deadline in between.
func (s *story) wait(d time.Duration) {
	end := s.now.Add(d)
	for {
		next := s.cell.NextDeadline()
		if next == 0 || next > end {
			break
		}
		s.now = max(s.now, next)
		whole := s.out
		s.out = &strings.Builder{}
		s.do(&kernel.Tick{})
		if text := s.out.String(); text != "" {
			fmt.Fprintf(whole, "after %s:\n%s", spell(s.now.Sub(storyBegan)), text)
		}
		s.out = whole
	}
	s.now = end
}

// restart stops the service, and starts it again from a snapshot.
func (s *story) restart(down time.Duration) {
	s.checkReplay()
	s.cell = s.restored()
	s.now, s.down = s.now.Add(down), s.down+s.now.Add(down).Sub(s.cell.Last())
	s.do(&kernel.Resume{})
}

func (s *story) restored() *cell.Cell {
	var snapshot bytes.Buffer
	restored := cell.New(s.config)
	if err := errors.Join(s.cell.Freeze().Write(&snapshot), restored.Load(&snapshot)); err != nil {
		s.t.Fatal(err)
	}
	return restored
}

// checkReplay compares the cell with one that replays the journal, and with one from its snapshot.
func (s *story) checkReplay() {
	replayed := cell.New(s.config)
	for i, batch := range s.journal {
		if err := replayed.Replay(uint64(i)+1, batch); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := errors.Join(
		canon.Differ("the replayed cell", replayed.Freeze(), s.cell.Freeze()),
		canon.Differ("the restored cell", s.restored().Freeze(), s.cell.Freeze()),
	); err != nil {
		s.t.Error(err)
	}
}

// made returns an id for a record that a command makes. The record gets its name when it first occurs in an event.
func (s *story) made() (id domain.UUID) {
	s.seed++
	id[0] = 0xf1
	binary.BigEndian.PutUint64(id[8:], s.seed)
	return id
}

// name returns the script's name for an id. A new id is named after its kind: party1, party2.
func (s *story) name(id domain.UUID, kind string) string {
	if id.IsZero() {
		return "none"
	}
	if name, ok := s.names[id]; ok {
		return name
	}
	s.kinds[kind]++
	name := kind + strconv.Itoa(s.kinds[kind])
	s.names[id], s.ids[name] = name, id
	return name
}

// id returns the id for a name of the script.
func (s *story) id(name string) domain.UUID {
	id, ok := s.ids[name]
	if !ok {
		s.d.Fatalf(s.t, "nothing is called %q", name)
	}
	return id
}

var inText = regexp.MustCompile(`(?:(pty|mm|bf|auto-backfill|gi|inv|fs|psess)-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`)

// readable replaces ids with names.
func (s *story) readable(text string) string {
	text = inText.ReplaceAllStringFunc(text, func(found string) string {
		parts := inText.FindStringSubmatch(found)
		id, ok := domain.ParseUUID(parts[2])
		if !ok {
			return found
		}
		kind := map[string]string{"pty": "party", "mm": "ticket", "bf": "ticket", "auto-backfill": "ticket", "gi": "game", "inv": "invite", "fs": "login", "psess": "ps", "": "id"}[parts[1]]
		return s.name(id, kind)
	})
	for _, prefix := range []string{storyAccount + "gamesession/", storyFleet + "/" + storyHome + "/"} {
		text = strings.ReplaceAll(text, prefix, "")
	}
	return text
}

func (s *story) printf(format string, args ...any) {
	if text := s.readable(fmt.Sprintf(format, args...)); !s.quiet {
		fmt.Fprintln(s.out, text)
	}
}

// at formats an instant as the time since the script began.
func (s *story) at(t domain.Time) string { return spell(t.Sub(storyBegan)) }

// by formats a contact deadline as wall clock time, provided that the service stays up.
func (s *story) by(t domain.ContactTime) string { return s.at(domain.Time(t).Add(s.down)) }

// spell formats a duration without units that are zero: 2m, not 2m0s.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// words are the arguments of one line: those without a value, such as players, and those with one.
type words struct {
	s    *story
	args []datadriven.CmdArg
}

func (a words) find(key string) (datadriven.CmdArg, bool) {
	i := slices.IndexFunc(a.args, func(x datadriven.CmdArg) bool { return x.Key == key })
	if i < 0 {
		return datadriven.CmdArg{}, false
	}
	return a.args[i], true
}

func (a words) has(word string) bool {
	x, ok := a.find(word)
	return ok && len(x.Vals) == 0
}

// names returns the words without a value, except those that every command understands and those in but.
func (a words) names(but ...string) (names []string) {
	for _, x := range a.args {
		if len(x.Vals) == 0 && x.Key != "quiet" && !slices.Contains(but, x.Key) {
			names = append(names, x.Key)
		}
	}
	return names
}

// one returns the only name, or the first of several.
func (a words) one(but ...string) string {
	names := a.names(but...)
	if len(names) == 0 {
		a.s.d.Fatalf(a.s.t, "a name is missing")
	}
	return names[0]
}

func (a words) or(key, otherwise string) string {
	if x, ok := a.find(key); ok && len(x.Vals) > 0 {
		return x.Vals[0]
	}
	return otherwise
}

func (a words) list(key string) []string {
	x, _ := a.find(key)
	return x.Vals
}

func (a words) number(key string, otherwise int32) int32 {
	n, err := strconv.ParseInt(a.or(key, strconv.Itoa(int(otherwise))), 10, 32)
	if err != nil {
		a.s.d.Fatalf(a.s.t, "%s: %v", key, err)
	}
	return int32(n)
}

func (a words) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		a.s.d.Fatalf(a.s.t, "%v", err)
	}
	return d
}

// options changes options of player flow by their names in docs/spec/player-api.md#options.
func (a words) options(config flow.Config) flow.Config {
	for _, x := range a.args {
		i := slices.IndexFunc(flow.Options(), func(o flow.Option) bool { return o.Name == x.Key })
		if i < 0 || len(x.Vals) != 1 {
			a.s.d.Fatalf(a.s.t, "%s is not an option with a value", x.Key)
		}
		value := x.Vals[0]
		if _, err := strconv.ParseFloat(value, 64); err != nil && value != "true" && value != "false" {
			value = strconv.Quote(value)
		}
		changed, faults := config.With(fmt.Sprintf(`{%q:{%q:%s}}`, flow.Options()[i].Section, x.Key, value))
		if len(faults) > 0 {
			a.s.d.Fatalf(a.s.t, "%v", faults)
		}
		config = changed
	}
	return config
}

func storyPeople(names []string, team string) []matchmaking.Player {
	players := make([]matchmaking.Player, len(names))
	for i, name := range names {
		players[i] = matchmaking.Player{ID: name, Team: team}
	}
	return players
}
