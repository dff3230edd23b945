package agentlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
)

// streamOf opens a stream and returns it with its id.
func (a *agent) streamOf(process string) (*Output, string) {
	a.Helper()
	o, err := a.door.Output(key(process), 1000, 10, true)
	if err != nil {
		a.Fatal(err)
	}
	push := a.wait(`"Action":"StartOutput"`, `"ProcessId":"`+process+`","TailBytes":1000,"TailLines":10,"Follow":true`)
	return o, regexp.MustCompile(`"StreamId":"([^"]+)"`).FindStringSubmatch(push)[1]
}

func (a *agent) sendOutput(stream string, number int, rest string) {
	a.Helper()
	a.send(fmt.Sprintf(`{"Action":"SendOutput","RequestId":"%d","StreamId":%q,"Number":%d,%s}`, number, stream, number, rest))
}

func (a *agent) answered(number, status int) {
	a.Helper()
	a.wait(`"Action":"SendOutput"`, fmt.Sprintf(`"RequestId":"%d","StatusCode":%d`, number, status))
}

func next(t *testing.T, o *Output, want string) {
	t.Helper()
	if p, err := o.Next(t.Context()); err != nil || p.Text != want {
		t.Fatalf("got %.50q, %v; want %.50q", p.Text, err, want)
	}
}

func TestOutputGoesToItsReader(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	o, id := a.streamOf("p1")
	a.sendOutput(id, 1, `"Output":"one"`)
	a.answered(1, 200)
	a.sendOutput(id, 1, `"Output":"one"`) // its answer was lost
	a.answered(1, 200)
	a.sendOutput(id, 2, `"Output":"two","Truncated":true`)
	a.answered(2, 200)
	next(t, o, "one")
	if p, err := o.Next(t.Context()); err != nil || p != (Piece{"two", true}) {
		t.Errorf("got %v, %v", p, err)
	}
	a.sendOutput(id, 3, `"Output":"three","End":true`)
	a.answered(3, 200)
	next(t, o, "three")
	if _, err := o.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	o.Close()

	o, id = a.streamOf("p2")
	a.sendOutput(id, 1, `"End":true,"Error":"no such process"`)
	a.answered(1, 200)
	if _, err := o.Next(t.Context()); err == nil || err.Error() != "no such process" {
		t.Errorf("an end with a reason: %v", err)
	}
	o.Close()

	o, id = a.streamOf("p3")
	o.Close()
	a.wait(`{"Action":"StopOutput","StreamId":"` + id + `"}`)
	a.sendOutput(id, 7, `"Output":"late"`)
	a.answered(7, 404)

	o, _ = a.streamOf("p4")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that went away: %v", err)
	}
	o.Close()
}

// A reader that takes nothing makes the agent wait, and occupies bounded memory.
func TestSlowReaderOfOutput(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	o, id := a.streamOf("p1")
	defer o.Close()
	piece := strings.Repeat("x", 32<<10)
	number := 1
	for ; number <= streamBytes>>15; number++ {
		a.sendOutput(id, number, `"Output":"`+piece+`"`)
		if number < streamBytes>>15 {
			a.answered(number, 200)
		}
	}
	a.answered(number-1, 429)
	a.send(`{"Action":"SendHeartbeat","RequestId":"beat","Status":"Active","ProcessList":[],"HeartbeatTimeMillis":1}`)
	a.wait(`"RequestId":"beat","StatusCode":200`)
	next(t, o, piece)
	a.sendOutput(id, number-1, `"Output":"`+piece+`"`)
	a.answered(number-1, 200)
	for range number - 2 {
		next(t, o, piece)
	}
	for range 3000 { // small ones count, too
		a.sendOutput(id, number, `"Output":""`)
		number++
		if number%50 == 0 { // the door takes 100 a second
			a.sendOutput(id, number, `"Output":""`)
			a.wait(fmt.Sprintf(`"RequestId":"%d"`, number))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pieces) > streamBytes/streamOverhead {
		t.Errorf("%d messages wait", len(o.pieces))
	}
}

func TestOutputOfAnotherHost(t *testing.T) {
	w := newWorld(t)
	a := w.native()
	o, id := a.streamOf("p1")
	defer o.Close()
	w.register("other")
	q := w.query("other")
	q.Set("AgentKind", "native")
	q.Set("AgentProto", "1")
	b := w.connect(q)
	b.sendOutput(id, 1, `"Output":"false"`)
	b.answered(1, 404)
	a.sendOutput(id, 1, `"Output":"true"`)
	next(t, o, "true")
}

func TestOutputIsRefused(t *testing.T) {
	w := newWorld(t)
	refused := func(reason domain.Reason) {
		t.Helper()
		_, err := w.door.Output(key("p1"), 1, 0, false)
		if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Reason != reason {
			t.Errorf("got %v, want %v", err, reason)
		}
	}
	refused(domain.Conflict)        // no agent
	w.connect(w.query(testCompute)) // as the official agent
	refused(domain.Conflict)
	a := w.native()
	var open []*Output
	for range streamsOfHostMax {
		o, _ := a.streamOf("p1")
		open = append(open, o)
	}
	refused(domain.Overloaded)
	open[0].Close()
	a.streamOf("p1")
	w.door.outputs.mu.Lock()
	for i := range streamsMax {
		w.door.outputs.open[fmt.Sprint(i)] = &Output{}
	}
	w.door.outputs.mu.Unlock()
	open[1].Close()
	refused(domain.Overloaded)
}
