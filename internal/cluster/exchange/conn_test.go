package exchange

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/panics"
)

// pair returns both ends of a connection over the loopback interface.
func pair(t *testing.T) (asks, answers net.Conn) {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	if asks, err = net.Dial("tcp", port.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if answers, err = port.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = asks.Close(), answers.Close() })
	return asks, answers
}

// serve answers questions, and returns a function that waits for the end of the connection.
func serve(t *testing.T, conn net.Conn, answer func(context.Context, byte, []byte) (byte, []byte)) (ended func() error) {
	result := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { result <- Serve(ctx, conn, answer) }()
	t.Cleanup(func() { cancel(); <-result })
	return func() error {
		err := <-result
		result <- err
		return err
	}
}

// TestManyQuestions: each caller gets its own answer, whatever the sizes and the order of answers.
func TestManyQuestions(t *testing.T) {
	asks, answers := pair(t)
	ended := serve(t, answers, func(_ context.Context, kind byte, body []byte) (byte, []byte) {
		if len(body)%7 == 0 {
			time.Sleep(time.Millisecond)
		}
		return kind + 1, bytes.ToUpper(body)
	})
	c := NewClient(asks)
	var work sync.WaitGroup
	for caller := range 50 {
		work.Go(func() {
			for i := range 40 {
				body := strings.Repeat(string(rune('a'+caller%26)), caller*i*i%300_000)
				kind, got, err := c.Ask(t.Context(), byte(caller), []byte(body))
				if err != nil || kind != byte(caller)+1 || string(got) != strings.ToUpper(body) {
					t.Errorf("caller %d: outcome %d, %d bytes, %v; asked with %d bytes", caller, kind, len(got), err, len(body))
					return
				}
			}
		})
	}
	work.Wait()
	c.Close()
	if err := ended(); err != nil {
		t.Errorf("the connection was closed between two messages: %v", err)
	}
}

func TestLostConnection(t *testing.T) {
	asks, answers := pair(t)
	asked := make(chan struct{})
	serve(t, answers, func(ctx context.Context, _ byte, _ []byte) (byte, []byte) {
		close(asked)
		<-ctx.Done()
		return done, nil
	})
	c := NewClient(asks)
	go func() { <-asked; _ = answers.Close() }()
	if _, _, err := c.Ask(t.Context(), execute, nil); !errors.Is(err, ErrLost) {
		t.Errorf("the connection was lost meanwhile: %v", err)
	}
	<-c.Ended()
	if _, _, err := c.Ask(t.Context(), execute, nil); !errors.Is(err, ErrLost) {
		t.Errorf("the connection was lost before: %v", err)
	}
}

func TestGivenUp(t *testing.T) {
	asks, answers := pair(t)
	proceed := make(chan struct{})
	serve(t, answers, func(_ context.Context, kind byte, _ []byte) (byte, []byte) {
		if kind == 's' {
			<-proceed
		}
		return done, []byte{kind}
	})
	c := NewClient(asks)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, _, err := c.Ask(ctx, 's', nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	close(proceed)
	if _, got, err := c.Ask(t.Context(), 'x', nil); err != nil || string(got) != "x" {
		t.Errorf("the next question is answered %q, %v", got, err)
	}
}

// TestForeignBytes: bytes that are not a message end the connection, and an announced length alone costs no memory.
func TestForeignBytes(t *testing.T) {
	for name, b := range map[string][]byte{
		"text":      []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"too long":  binary.BigEndian.AppendUint32(nil, messageMax),
		"too short": {0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"cut off":   {0, 0, 1, 0, 1, 2, 3},
		"promised":  append(binary.BigEndian.AppendUint32(nil, messageMax-4), make([]byte, 9)...),
	} {
		asks, answers := pair(t)
		ended := serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { t.Error("answered"); return 0, nil })
		if _, err := asks.Write(append(b, make([]byte, 0, 16)...)); err != nil {
			t.Fatal(err)
		}
		_ = asks.(*net.TCPConn).CloseWrite()
		if err := ended(); err == nil {
			t.Errorf("%s: taken for messages", name)
		}
	}
	if allocated := testing.AllocsPerRun(1, func() {
		_, _ = readBody(bufio.NewReader(bytes.NewReader(nil)), messageMax)
	}); allocated > 20 {
		t.Errorf("%v allocations for a promise", allocated)
	}
}

func TestTooLongMessage(t *testing.T) {
	asks, answers := pair(t)
	serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return done, nil })
	c := NewClient(asks)
	if _, _, err := c.Ask(t.Context(), execute, make([]byte, messageMax)); err == nil {
		t.Error("a message that no peer would read was sent")
	}
	if _, _, err := c.Ask(t.Context(), execute, nil); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestTooLongAnswer: if an answer is too long to be sent, the caller gets an error at once.
func TestTooLongAnswer(t *testing.T) {
	asks, answers := pair(t)
	serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return done, make([]byte, messageMax) })
	if _, _, err := NewClient(asks).Ask(t.Context(), execute, nil); !errors.Is(err, ErrLost) {
		t.Errorf("a too long answer: %v", err)
	}
	if outcome, _ := outcome(make([]byte, messageMax), nil); outcome != unknown {
		t.Errorf("the outcome of a command with a too long answer is %q", outcome)
	}
}

// follower is the office of a node that follows another one.
type follower struct{}

func (follower) VerifyRead(context.Context) (uint64, error) { return 0, errors.New("not the leader") }
func (follower) Leader() (id, address string)               { return "other", "there" }

func TestPeersAtAFollower(t *testing.T) {
	dials := 0
	p := NewPeers("self", follower{}, func(context.Context, string, string) (net.Conn, error) {
		dials++
		asks, answers := pair(t)
		serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return done, []byte("abc") })
		return asks, nil
	})
	if n, err := p.Index(t.Context()); !errors.Is(err, engine.ErrNotLeading) {
		t.Errorf("an index of 3 bytes is %d, %v", n, err)
	}
	if err := p.Verify(t.Context()); !errors.Is(err, engine.ErrNotLeading) {
		t.Errorf("a follower takes itself for the node that decides: %v", err)
	}
	if _, err := p.Execute(t.Context(), &engine.Request{Command: make([]byte, messageMax)}); errors.Is(err, engine.ErrStopped) || err == nil {
		t.Errorf("a command that cannot be sent: %v", err)
	}
	p.Close()
	if _, err := p.Index(t.Context()); !errors.Is(err, engine.ErrNotLeading) || dials != 1 {
		t.Errorf("after Close: %v, %d connections were made", err, dials)
	}
}

// moving is the office of a node whose leader changes.
type moving struct {
	follower
	leader atomic.Value
}

func (m *moving) Leader() (id, address string) { return m.leader.Load().(string), "there" }

// TestDeadLeader: an attempt to reach a leader whose machine is gone does not delay questions to the next one, nor replace the connection to it.
func TestDeadLeader(t *testing.T) {
	office := &moving{}
	office.leader.Store("dead")
	dials, reached := make(chan string, 10), make(chan struct{})
	p := NewPeers("self", office, func(ctx context.Context, _, node string) (net.Conn, error) {
		dials <- node
		asks, answers := pair(t)
		serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return done, []byte(node) })
		if node == "dead" {
			<-reached
		}
		return asks, nil
	})
	defer p.Close()
	first := make(chan error, 1)
	go func() {
		_, err := p.Ask(t.Context(), index, nil)
		first <- err
	}()
	<-dials
	office.leader.Store("next")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if answer, err := p.Ask(ctx, index, nil); err != nil || string(answer) != "next" {
		t.Fatalf("%q, %v", answer, err)
	}
	close(reached)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if answer, err := p.Ask(ctx, index, nil); err != nil || string(answer) != "next" || len(dials) != 1 {
		t.Errorf("%q, %v, %d more dials", answer, err, len(dials))
	}
}

// TestUnreachableLeader: callers that wait for the same attempt to reach the leader share its failure. If each of them tried in turn, the last one would
// wait for all their time-outs.
func TestUnreachableLeader(t *testing.T) {
	const callers = 8
	var dials atomic.Int32
	begun, fails := make(chan struct{}, callers), make(chan struct{})
	p := NewPeers("self", follower{}, func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		begun <- struct{}{}
		<-fails
		return nil, errors.New("no route")
	})
	defer p.Close()
	var asking sync.WaitGroup
	ask := func() {
		if _, err := p.Ask(t.Context(), index, nil); !errors.Is(err, engine.ErrNotLeading) || !strings.Contains(fmt.Sprint(err), "no route") {
			t.Error(err)
		}
	}
	asking.Go(ask)
	<-begun
	for range callers - 1 {
		asking.Go(ask)
	}
	time.Sleep(50 * time.Millisecond) // for the others to find the attempt
	close(fails)
	asking.Wait()
	if n := dials.Load(); n >= callers {
		t.Errorf("%d callers made %d attempts, one after another", callers, n)
	}
}

// TestDialerGivesUp: a caller that gives up while it reaches the leader does not make the others fail, too.
func TestDialerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var dials atomic.Int32
	begun := make(chan struct{})
	p := NewPeers("self", follower{}, func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		asks, answers := pair(t)
		serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return done, []byte("abc") })
		return asks, nil
	})
	defer p.Close()
	var asking sync.WaitGroup
	asking.Go(func() { _, _ = p.Ask(ctx, index, nil) })
	<-begun
	asking.Go(func() {
		if answer, err := p.Ask(t.Context(), index, nil); err != nil || string(answer) != "abc" {
			t.Errorf("%q, %v", answer, err)
		}
	})
	time.Sleep(50 * time.Millisecond) // for the second caller to find the attempt of the first
	cancel()
	asking.Wait()
}

// TestCallerOfAnArchiveGivesUp: a caller that gives up while a node is being reached does not make the node count as unreachable for others.
func TestCallerOfAnArchiveGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := NewArchives(func() []Node { return []Node{{"other", "there"}} }, func(context.Context, string, string) (net.Conn, error) {
		if ctx.Err() == nil {
			cancel()
			return nil, ctx.Err()
		}
		asks, answers := pair(t)
		serve(t, answers, func(context.Context, byte, []byte) (byte, []byte) { return lacking, nil })
		return asks, nil
	})
	defer x.Close()
	if _, err := x.Ask(ctx, "other", &engine.ArchiveQuestion{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gives up: %v", err)
	}
	if _, err := x.Ask(t.Context(), "other", &engine.ArchiveQuestion{}); !errors.Is(err, engine.ErrArchiveLacks) {
		t.Errorf("the next caller: %v", err)
	}
}

// TestPanicOfAnAnswer: a panic is the outcome of its question only.
func TestPanicOfAnAnswer(t *testing.T) {
	asks, answers := pair(t)
	fails := func(context.Context, []byte) ([]byte, error) { panic("a defect") }
	serve(t, answers, Answer(nil, follower{}, map[byte]Handler{Explain: fails}, panics.New(slog.New(slog.DiscardHandler))))
	c := NewClient(asks)
	if _, err := c.AskFor(t.Context(), Explain, nil); !errors.Is(err, engine.ErrStopped) || !strings.Contains(err.Error(), "panic") {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	if _, err := c.AskFor(t.Context(), index, nil); !errors.Is(err, engine.ErrNotLeading) {
		t.Errorf("the next question: %v", err)
	}
}

// TestOutcomes: a follower's callers get the same error that the leader returned.
func TestOutcomes(t *testing.T) {
	until := domain.Time(77)
	byCode := flow.Refuse(flow.Refusal{Code: flow.QueueIsClosed, Players: []string{"p1"}, Until: until, Lock: &flow.Penalty{Level: 3, Until: 9},
		Faults: flow.Faults{{Path: "a.b", Message: "wrong"}}}, "the queue %s is closed", "ranked")
	early := &engine.Undecided{Refusal: domain.Refuse(domain.Overloaded, "no room")}
	if there, ok := errors.AsType[*engine.Undecided](failure(outcome(nil, early))); !ok || !reflect.DeepEqual(there, early) {
		t.Errorf("%+v arrives as %+v", early, there)
	}
	late := fmt.Errorf("%w: %w", engine.ErrStopped, domain.Refuse(domain.Conflict, "late"))
	if got := failure(outcome(nil, late)); !errors.Is(got, engine.ErrStopped) {
		t.Errorf("%v arrives as %v", late, got)
	}
	for _, want := range []error{nil, domain.Refuse(domain.Full, "100 %% full"), domain.Refuse(domain.NotFound, "\xff\xfe"), byCode, engine.ErrNotLeading} {
		got := failure(outcome(nil, want))
		if r, ok := errors.AsType[*domain.Refusal](want); ok {
			if there, ok := errors.AsType[*domain.Refusal](got); !ok || !reflect.DeepEqual(r, there) {
				t.Errorf("%+v arrives as %+v", want, got)
			}
		} else if got != want {
			t.Errorf("%v arrives as %v", want, got)
		}
	}
	for _, err := range []error{io.ErrUnexpectedEOF, engine.ErrStopped} {
		if got := failure(outcome(nil, err)); !errors.Is(got, engine.ErrStopped) {
			t.Errorf("%v arrives as %v, want an unknown outcome", err, got)
		}
	}
	if err := failure(refused, []byte("nonsense")); !errors.Is(err, engine.ErrStopped) {
		t.Errorf("a refusal that cannot be read: %v", err)
	}
}
