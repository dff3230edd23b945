package commandcodec

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// stayers are the commands that the deciding node alone gives.
var stayers = map[string]string{
	"answers.Once": "the engine wraps a command in it", "answers.Void": "the engine records what had no effect", "answers.DropAnswers": "",
	"capacity.Plan": "the leader gives it every second", "capacity.ScaleFleet": "likewise, every minute",
	"access.ActivateSecret": "the node that decides gives it when the others have the generation", "access.EndOldSecrets": "likewise, every second",
	"kernel.Forget": "", "kernel.RaiseLevel": "", "kernel.Resume": "", "kernel.Tick": "",
	"matchmaking.ProposeMatches": "the matcher runs beside the node that decides", "matchmaking.BeginSearch": "likewise", "matchmaking.FailTickets": "likewise",
	"membership.LoseNode": "the node that decides gives others up",
	"access.AcceptLoss":   "of a data directory", "access.TakeOverAccessKeys": "of a file in one",
}

// filler sets exported fields to random values; about one in four stays zero, and pointers to zero values occur.
type filler struct{ *rand.Rand }

func (x filler) fill(v reflect.Value, depth int) {
	if x.IntN(4) == 0 && depth > 0 && v.Kind() != reflect.Interface {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(x.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(x.Uint64()) >> x.IntN(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(x.Uint64() >> x.IntN(64))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(x.NormFloat64())))
	case reflect.String:
		v.SetString([]string{"", "a", "säule", "\xff\x00", strings.Repeat("long ", 100)}[x.IntN(5)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		x.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), x.IntN(3), 3))
		for i := range v.Len() {
			x.fill(v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			x.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range x.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			x.fill(key, depth+1)
			x.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("cbor") != "-" {
				x.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(x.command(reflect.TypeFor[*hosting.StartPlacement]())))
	}
}

func (x filler) command(t reflect.Type) kernel.Command {
	made := reflect.New(indirect(t))
	x.fill(made.Elem(), 0)
	if t.Kind() == reflect.Pointer {
		return made.Interface().(kernel.Command)
	}
	return made.Elem().Interface().(kernel.Command)
}

// TestTravel: each command arrives as it left, with nil and empty, absent and zero told apart; its answer completes the command at home.
func TestTravel(t *testing.T) {
	x := filler{rand.New(rand.NewPCG(1, 2))}
	for name, typ := range byName {
		for range 50 {
			asked := x.command(typ)
			b, err := Encode(asked)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			away, err := b.Asked().Parse()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			arrived, err := away.Command()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !reflect.DeepEqual(asked, arrived) {
				t.Fatalf("%s: sent %+v, arrived %+v", name, asked, arrived)
			}
			executed := x.command(typ) // anything may have changed
			if wrapped, ok := executed.(playerflow.Asked); ok {
				executed = playerflow.Asked{Command: wrapped.Command, By: asked.(playerflow.Asked).By}
			}
			answer, err := away.Answer(executed)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if wrapped, ok := asked.(playerflow.Asked); ok {
				x.fill(reflect.ValueOf(wrapped.Command).Elem(), 0) // a failed execution left it in any state
			} else {
				x.fill(value(asked), 0)
			}
			if err := b.Fill(asked, answer); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !reflect.DeepEqual(asked, executed) {
				t.Fatalf("%s: at home %+v, executed %+v", name, asked, executed)
			}
		}
	}
}

// TestFormsOfTheReleaseBefore: nodes that write zero fields, too, as the library does, are understood.
func TestFormsOfTheReleaseBefore(t *testing.T) {
	x := filler{rand.New(rand.NewPCG(3, 4))}
	for name, typ := range byName {
		for range 20 {
			asked := x.command(typ)
			if _, ok := asked.(playerflow.Asked); ok {
				continue // it has a command in it
			}
			v := value(asked)
			all := map[string]cbor.RawMessage{}
			for _, f := range planOf(v.Type()).fields {
				var b buffer
				was := f
				was.write = byLibrary
				if err := was.encode(&b, v.Field(f.index)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				all[f.name] = b.Bytes()
			}
			form, err := library.Marshal([]any{nameOf(typ), all})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			away, err := Asked(form).Parse()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if arrived, err := away.Command(); err != nil || !reflect.DeepEqual(asked, arrived) {
				t.Fatalf("%s: sent %+v, arrived %+v, %v", name, asked, arrived, err)
			}
		}
	}
}

func TestAnswersHaveNoZeroFields(t *testing.T) {
	cmd := &hosting.ReservePlayers{Game: "game-1", Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID{1}, Player: "player-1"}}}
	asked, err := Encode(cmd)
	if err != nil {
		t.Fatal(err)
	}
	reserved := hosting.PlayerSession{GameID: "game-1", Port: 4000}
	cmd.Reserved = []hosting.PlayerSession{reserved}
	answer, err := asked.Answer(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if want := "\xa1hReserved\x81\xa2fGameIDfgame-1dPort\x19\x0f\xa0"; string(answer) != want {
		t.Errorf("the answer is %q, want %q", answer, want)
	}
	cmd.Reserved = nil
	if err := asked.Fill(cmd, answer); err != nil || !reflect.DeepEqual(cmd.Reserved, []hosting.PlayerSession{reserved}) {
		t.Errorf("filled in: %+v, %v", cmd.Reserved, err)
	}
}

func TestAnswersHaveOnlyWhatChanged(t *testing.T) {
	cmd := &hosting.CreateLocation{Name: "custom-berlin"}
	asked, err := Encode(cmd)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := asked.Answer(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) != 1 {
		t.Errorf("the answer of a command that changed nothing in itself has %d bytes, want 1: an empty map", len(answer))
	}
}

func TestFillSharesNothing(t *testing.T) {
	shared := []string{"a", "b"}
	home := &playerflow.SetBlocks{Blocked: shared}
	asked, _ := Encode(home)
	away := &playerflow.SetBlocks{Blocked: []string{"c"}}
	answer, err := asked.Answer(away)
	if err != nil {
		t.Fatal(err)
	}
	if err := asked.Fill(home, answer); err != nil {
		t.Fatal(err)
	}
	if shared[0] != "a" || home.Blocked[0] != "c" {
		t.Errorf("shared %q, at home %q", shared, home.Blocked)
	}
}

func TestCompiledRulesAreNotSent(t *testing.T) {
	b, err := Encode(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "arena"}})
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := b.Command()
	if err != nil {
		t.Fatal(err)
	}
	if got := cmd.(*matchmaking.CreateRuleSet); got.RuleSet.Name != "arena" || got.Compiled != nil {
		t.Errorf("arrived %+v", got)
	}
}

func TestUnknownCommands(t *testing.T) {
	if _, err := Encode(&kernel.Tick{}); err == nil {
		t.Error("a Tick travels")
	}
	for _, b := range []string{"", "\x00", "\x82\x66Future\xa0", "\xff\xff\xff"} {
		if f, err := Asked(b).Parse(); err == nil {
			t.Errorf("%q is a %v", b, f.typ)
		}
	}
	asked := playerflow.Asked{Command: &kernel.Tick{}, By: flow.Actor{}}
	if _, err := Encode(asked); err == nil {
		t.Error("a Tick travels in another command")
	}
}

// TestEveryCommandTravelsOrStays finds a new command that is missing from both lists.
func TestEveryCommandTravelsOrStays(t *testing.T) {
	decides := regexp.MustCompile(`(?m)^func \(\w* ?\*?(\w+)\) Decide\(\w+ \*(?:kernel\.)?Tx\) error`)
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range decides.FindAllSubmatch(text, -1) {
			found++
			name := filepath.Base(filepath.Dir(file)) + "." + string(m[1])
			_, stays := stayers[name]
			if travels := byName[name] != nil; travels == stays {
				t.Errorf("%s: travels %t, stays %t: add it to travellers, or here to stayers", name, travels, stays)
			}
		}
	}
	if found != len(byName)+len(stayers) {
		t.Errorf("%d commands found, %d travel and %d stay", found, len(byName), len(stayers))
	}
}

func BenchmarkTravel(b *testing.B) {
	cmd := &playerflow.SetReady{Caller: playerflow.Caller{Player: "player-1", Request: "0123456789abcdef"}}
	for b.Loop() {
		asked, _ := Encode(cmd)
		away, err := asked.Asked().Parse()
		if err != nil {
			b.Fatal(err)
		}
		arrived, _ := away.Command()
		answer, _ := away.Answer(arrived)
		if err := asked.Fill(cmd, answer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAtHome: what a command of the leader's own callers costs.
func BenchmarkAtHome(b *testing.B) {
	cmd := &hosting.ReservePlayers{Game: "game-1", Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID{1}, Player: "player-1"}}, Reserved: make([]hosting.PlayerSession, 1)}
	for b.Loop() {
		cmd.Reserved = cmd.Reserved[:0]
		asked, err := Encode(cmd)
		if err != nil {
			b.Fatal(err)
		}
		cmd.Reserved = cmd.Reserved[:1]
		if _, err := asked.Answer(cmd); err != nil {
			b.Fatal(err)
		}
	}
}
