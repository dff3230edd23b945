package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/internal/webhook"
)

const topic = "arn:aws:sns:eu-central-1:000000000000:placements"

// office is a cell whose queue names a topic, with the sender of its webhooks.
type office struct {
	*testing.T
	memory *journaltest.Memory
	old    *archivetest.Memory
	disk   journal.Journal
	past   archive.Archive
	engine *engine.Engine
	sender *Sender
	bus    *inbox
	topic  *inbox // nil: the topic has no receiver
}

func newOffice(t *testing.T, bus, topic *inbox) *office {
	o := &office{T: t, memory: journaltest.NewMemory(1), old: archivetest.NewMemory(1), bus: bus, topic: topic}
	o.open()
	t.Cleanup(o.close)
	o.do(&hosting.CreateLocation{Name: "custom-a", Region: "eu-central-1"})
	o.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "eu-central-1", Name: "f"}, Locations: []string{"custom-a"}})
	o.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "host", Location: "custom-a", IPAddress: "192.0.2.10", DNSName: "host.games.example"}})
	o.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "eu-queue", Region: "eu-central-1", Account: "000000000000", CustomEventData: "eu-live", NotificationTarget: topicARN(topic),
		Destinations: []string{"arn:aws:gamelift:eu-central-1::fleet/fleet-1"},
	}})
	return o
}

func topicARN(x *inbox) string {
	if x == nil {
		return ""
	}
	return topic
}

// open starts the engine and the webhooks on the content of the journal.
func (o *office) open() {
	o.Helper()
	var err error
	if o.disk, err = o.memory.Open(); err != nil {
		o.Fatal(err)
	}
	if o.past, err = o.old.Open(); err != nil {
		o.Fatal(err)
	}
	config := cell.DefaultConfig()
	config.Notify = &notice.Notify{Bus: o.bus != nil, Topics: []string{topic}, Max: 10_000, Age: time.Hour}
	if o.engine, err = engine.Open(o.Context(), engine.Config{Journal: o.disk, Archive: o.past, Cell: config, EndedLinger: time.Millisecond}); err != nil {
		o.Fatal(err)
	}
	o.sender = New(o.config())
	o.sender.Lead()
}

// config returns the configuration of a sender of this cell, at any node.
func (o *office) config() Config {
	c := Config{
		Engine: o.engine, Topics: map[string]string{}, Log: slog.New(slog.DiscardHandler), ConfirmAt: "http://muster.example/sns/",
		Keys: func(target string) []string { return []string{"key of " + target} }, Token: func(topic, url string) string { return "token" },
		Confirms:   func(topic, url, token string) bool { return token == "token" },
		FirstRetry: time.Millisecond, LastRetry: 20 * time.Millisecond, Patience: time.Minute,
	}
	if o.bus != nil {
		c.Bus = o.bus.url(o.T)
	}
	if o.topic != nil {
		c.Topics[topic] = o.topic.url(o.T)
	}
	return c
}

func (o *office) close() {
	o.sender.Rest()
	o.engine.Close()
	o.past.Close()
	o.disk.Close()
}

func (o *office) do(cmd kernel.Command) {
	o.Helper()
	if err := o.engine.Do(o.Context(), cmd); err != nil {
		o.Fatalf("%T: %v", cmd, err)
	}
}

// stop starts a placement and stops it.
func (o *office) stop(id string) {
	o.Helper()
	o.do(&hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "eu-queue", PlayersMax: 2}})
	o.do(&hosting.StopPlacement{ID: id})
}

// fulfil starts a placement for two players and fulfils it.
func (o *office) fulfil(id string) {
	o.Helper()
	key := fleet.Key{Fleet: "fleet-1", Compute: "host", Process: "server of " + id}
	o.do(&hosting.ConnectProcess{Process: key, Link: 7})
	o.do(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: 1})
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	o.do(&hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "eu-queue", PlayersMax: 2, Players: []placement.Player{
		{Player: "p<1>", ID: domain.PlayerSessionID{1}}, {Player: "p2", ID: domain.PlayerSessionID{2}},
	}}})
	o.do(&hosting.ActivateGameSession{Process: key, Game: session.MakeID("fleet-1", "custom-a", id)})
}

func (o *office) owed(topic string) (n int) {
	o.Helper()
	if err := o.engine.Read(o.Context(), func(v *cell.View) error { n = v.NoticeCount(topic); return nil }); err != nil {
		o.Fatal(err)
	}
	return n
}

// inbox is a receiver.
type inbox struct {
	server *httptest.Server
	answer func(*letter) int // nil: 200

	lock    sync.Mutex
	letters []letter
}

type letter struct {
	header http.Header
	body   string
	event  document[detail] // of an event, also when it came in an envelope
}

func (x *inbox) url(t *testing.T) string {
	if x.server == nil {
		x.server = httptest.NewServer(x)
		t.Cleanup(x.server.Close)
	}
	return x.server.URL + "/hook"
}

func (x *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	l := letter{header: r.Header, body: string(body)}
	text := l.body
	var envelope topicNotification
	if json.Unmarshal(body, &envelope) == nil && envelope.Type == "Notification" {
		text = envelope.Message
	}
	_ = json.Unmarshal([]byte(text), &l.event)
	if x.answer != nil {
		if status := x.answer(&l); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	x.lock.Lock()
	x.letters = append(x.letters, l)
	x.lock.Unlock()
}

// taken returns the letters that were answered with 200.
func (x *inbox) taken() []letter {
	x.lock.Lock()
	defer x.lock.Unlock()
	return slices.Clone(x.letters)
}

// placements returns the distinct placements that letters are about.
func placements(letters []letter) (ids []string) {
	for _, l := range letters {
		if id := l.event.Detail.PlacementID; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (o *office) confirm() {
	o.Helper()
	o.do(&notice.ConfirmSubscription{Topic: topic, URL: o.topic.url(o.T)})
}

// The documents equal the examples in the API's notes.
func TestDocuments(t *testing.T) {
	bus := &inbox{}
	o := newOffice(t, bus, nil)
	o.fulfil("7f2c1d9e")
	o.stop("c3f1a6d0")
	waittest.Until(o, "both are told", func() bool { return len(bus.taken()) == 2 })
	letters := bus.taken()
	slices.SortFunc(letters, func(a, b letter) int { return strings.Compare(a.event.Detail.PlacementID, b.event.Detail.PlacementID) })
	for i, want := range []string{
		`{"version":"0","id":"ID","detail-type":"GameLift Queue Placement Event","source":"aws.gamelift","account":"000000000000","time":"TIME",` +
			`"region":"eu-central-1","resources":["arn:aws:gamelift:eu-central-1:000000000000:gamesessionqueue/eu-queue"],` +
			`"detail":{"type":"PlacementFulfilled","placementId":"7f2c1d9e","port":"7777",` +
			`"gameSessionArn":"arn:aws:gamelift:eu-central-1::gamesession/fleet-1/custom-a/7f2c1d9e","ipAddress":"192.0.2.10","dnsName":"host.games.example",` +
			`"startTime":"START","endTime":"END","gameSessionRegion":"custom-a","placedPlayerSessions":[` +
			`{"playerId":"p<1>","playerSessionId":"psess-01000000-0000-0000-0000-000000000000"},` +
			`{"playerId":"p2","playerSessionId":"psess-02000000-0000-0000-0000-000000000000"}],"customEventData":"eu-live"}}`,
		`{"version":"0","id":"ID","detail-type":"GameLift Queue Placement Event","source":"aws.gamelift","account":"000000000000","time":"TIME",` +
			`"region":"eu-central-1","resources":["arn:aws:gamelift:eu-central-1:000000000000:gamesessionqueue/eu-queue"],` +
			`"detail":{"type":"PlacementCancelled","placementId":"c3f1a6d0","startTime":"START","endTime":"END","customEventData":"eu-live"}}`,
	} {
		l := letters[i]
		want = strings.NewReplacer(`"ID"`, `"`+l.event.ID+`"`, "TIME", l.event.Time, "START", l.event.Detail.StartTime, "END", l.event.Detail.EndTime).Replace(want)
		if l.body != want {
			t.Errorf("got  %s\nwant %s", l.body, want)
		}
		for form, text := range map[string]string{"2006-01-02T15:04:05Z": l.event.Time, "2006-01-02T15:04:05.000Z": l.event.Detail.EndTime} {
			if at, err := time.Parse(form, text); err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("time %s: %v", text, err)
			}
		}
		checkSignature(t, l, "key of events")
		if l.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %v", l.header)
		}
	}
	waittest.Until(o, "nothing is owed any more", func() bool { return o.owed(notice.Bus) == 0 })
}

// checkSignature does what the guide tells receivers to do.
func checkSignature(t *testing.T, l letter, key string) {
	t.Helper()
	var at int64
	header := l.header.Get(webhook.SignatureHeader)
	_, err := fmt.Sscanf(header, "t=%d,", &at)
	signed := func(with string) bool { return webhook.Sign(time.Unix(at, 0), []byte(l.body), with) == header }
	if err != nil || !signed(key) || signed("other") {
		t.Errorf("signature %q does not fit", header)
	}
	if time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("signature of %d", at)
	}
}

func TestTopicIsConfirmedFirst(t *testing.T) {
	in := &inbox{}
	o := newOffice(t, nil, in)
	o.stop("p1")
	waittest.Until(o, "the receiver is asked", func() bool { return len(in.taken()) == 1 })
	asked := in.taken()[0]
	var question topicConfirmation
	if err := json.Unmarshal([]byte(asked.body), &question); err != nil || question.Type != "SubscriptionConfirmation" || question.TopicARN != topic ||
		question.Token != "token" || asked.header.Get("X-Amz-Sns-Message-Type") != "SubscriptionConfirmation" {
		t.Fatalf("asked %s with %v", asked.body, asked.header)
	}
	checkSignature(t, asked, "key of "+topic)

	visit := func(method, url string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		o.sender.ServeHTTP(w, httptest.NewRequest(method, url, nil))
		return w
	}
	for _, wrong := range []string{
		strings.Replace(question.SubscribeURL, "token", "other", 1), strings.Replace(question.SubscribeURL, "placements", "other", 1),
		"http://muster.example/sns/?Action=ConfirmSubscription&TopicArn=&Token=token",
	} {
		if w := visit(http.MethodGet, wrong); w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d", wrong, w.Code)
		}
	}
	if w := visit(http.MethodGet, "http://muster.example/sns/?Action=Publish"); w.Code != http.StatusBadRequest {
		t.Errorf("got %d", w.Code)
	}
	if o.owed(topic) != 1 || len(placements(in.taken())) != 0 {
		t.Error("told before the receiver had confirmed")
	}
	if w := visit(http.MethodGet, question.SubscribeURL); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<SubscriptionArn>"+topic+":") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	waittest.Until(o, "what waited is told", func() bool { return len(in.taken()) == 2 })
	l := in.taken()[1]
	var n topicNotification
	if err := json.Unmarshal([]byte(l.body), &n); err != nil || n.Type != "Notification" || n.TopicARN != topic || n.MessageID != l.event.ID ||
		l.event.Detail.PlacementID != "p1" || l.header.Get("X-Amz-Sns-Message-Id") != n.MessageID || l.header.Get("X-Amz-Sns-Topic-Arn") != topic {
		t.Errorf("got %s with %v", l.body, l.header)
	}
	checkSignature(t, l, "key of "+topic)

	waittest.Until(o, "that is written down", func() bool { return o.owed(topic) == 0 })
	o.close()
	o.open() // the confirmation is remembered
	o.stop("p2")
	waittest.Until(o, "the next one is told", func() bool { return len(placements(in.taken())) == 2 })
	if len(in.taken()) != 3 {
		t.Errorf("%d letters, want 3: no second question", len(in.taken()))
	}
}

func TestReceiverThatWasDownGetsEverything(t *testing.T) {
	down, lock := true, sync.Mutex{}
	bus := &inbox{answer: func(*letter) int {
		lock.Lock()
		defer lock.Unlock()
		if down {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}}
	other := &inbox{}
	o := newOffice(t, bus, other)
	o.confirm()
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf("p%03d", i))
		o.stop(want[i])
	}
	waittest.Until(o, "the other receiver has everything", func() bool { return slices.Equal(placements(other.taken()), want) })
	if len(bus.taken()) != 0 || o.owed(notice.Bus) != 300 {
		t.Errorf("%d are owed to the one that is down", o.owed(notice.Bus))
	}
	lock.Lock()
	down = false
	lock.Unlock()
	waittest.Until(o, "it has everything", func() bool { return slices.Equal(placements(bus.taken()), want) })
	waittest.Until(o, "nothing is owed any more", func() bool { return o.owed(notice.Bus) == 0 && o.owed(topic) == 0 })
	if n := len(bus.taken()); n != 300 {
		t.Errorf("%d letters for 300 placements", n)
	}
}

func TestReceiverThatHangsHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	bus := &inbox{answer: func(*letter) int { <-release; return http.StatusOK }}
	other := &inbox{}
	o := newOffice(t, bus, other)
	t.Cleanup(func() { close(release) }) // before the receiver's server waits for its requests
	o.confirm()
	for i := range 100 {
		o.stop(fmt.Sprintf("p%03d", i))
	}
	waittest.Until(o, "the other receiver has everything", func() bool { return len(placements(other.taken())) == 100 })
	o.sender.Rest() // and the end does not wait for it either
}

func TestOneRefusedNotificationHoldsUpNoOther(t *testing.T) {
	bus := &inbox{answer: func(l *letter) int {
		if l.event.Detail.PlacementID == "poison" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}}
	o := newOffice(t, bus, nil)
	o.stop("poison")
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("p%02d", i))
		o.stop(want[i])
	}
	waittest.Until(o, "all others are told", func() bool { return slices.Equal(placements(bus.taken()), want) })
	waittest.Until(o, "only that one is owed", func() bool { return o.owed(notice.Bus) == 1 })
}

func TestWhatIsOwedSurvivesARestart(t *testing.T) {
	answer, lock := http.StatusInternalServerError, sync.Mutex{}
	bus := &inbox{answer: func(*letter) int { lock.Lock(); defer lock.Unlock(); return answer }}
	o := newOffice(t, bus, nil)
	o.fulfil("p1")
	o.stop("p2")
	waittest.Until(o, "the placements are archived", func() bool {
		left := 0
		err := o.engine.Read(t.Context(), func(v *cell.View) error {
			for _, id := range []string{"p1", "p2"} {
				if _, live := v.Placement(id); live {
					left++
				}
			}
			return nil
		})
		return err == nil && left == 0
	})
	o.close()
	lock.Lock()
	answer = http.StatusOK
	lock.Unlock()
	o.open()
	waittest.Until(o, "they are told by the next run", func() bool { return slices.Equal(placements(bus.taken()), []string{"p1", "p2"}) })
	for _, l := range bus.taken() {
		if l.event.Detail.PlacementID == "p1" && len(l.event.Detail.PlacedPlayerSessions) != 2 {
			t.Errorf("from the archive: %s", l.body)
		}
	}
}

// TestNextOffice: another node becomes leader while a request is under way. It sends the outstanding letters without waiting for another event, and the first
// node sends no more.
func TestNextOffice(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	var hangs atomic.Bool
	hangs.Store(true)
	bus := &inbox{answer: func(*letter) int {
		arrived <- struct{}{}
		if hangs.Load() {
			<-release
		}
		return http.StatusOK
	}}
	o := newOffice(t, bus, nil)
	next := New(o.config())
	o.stop("p1")
	o.stop("p2")
	<-arrived
	o.sender.Rest()
	o.sender.Rest()
	o.stop("p3") // between two offices
	hangs.Store(false)
	close(release)
	next.Lead()
	defer next.Rest()
	waittest.Until(o, "nothing is owed", func() bool { return o.owed(notice.Bus) == 0 })
	if got := placements(bus.taken()); !slices.Equal(got, []string{"p1", "p2", "p3"}) {
		t.Errorf("told of %v", got)
	}
	next.Rest()
	o.sender.Lead() // and back
	o.stop("p4")
	waittest.Until(o, "nothing is owed", func() bool { return o.owed(notice.Bus) == 0 })
	if all := bus.taken(); all[len(all)-1].event.Detail.PlacementID != "p4" {
		t.Errorf("told of %v", placements(all))
	}
}

// TestRestInterrupts: a receiver that never answers does not prevent the end of a node's leadership.
func TestRestInterrupts(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	bus := &inbox{answer: func(*letter) int { arrived <- struct{}{}; <-release; return http.StatusOK }}
	o := newOffice(t, bus, nil)
	o.stop("p1")
	<-arrived
	o.sender.Rest() // or the test ends with its time-out
	close(release)
	if n := o.owed(notice.Bus); n != 1 {
		t.Errorf("%d notices are owed, want 1", n)
	}
}

func TestRedirectIsNoDelivery(t *testing.T) {
	elsewhere := &inbox{}
	to := elsewhere.url(t)
	var asked atomic.Int64
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(moved.Close)
	bus := &inbox{server: moved}
	o := newOffice(t, bus, nil)
	o.stop("p1")
	waittest.Until(o, "it was tried again", func() bool { return asked.Load() > 2 })
	if len(elsewhere.taken()) != 0 || o.owed(notice.Bus) != 1 {
		t.Error("the redirect was followed")
	}
}

// Receivers get the notices whose events the sender missed.
func TestNoticesBehindAGap(t *testing.T) {
	bus := &inbox{}
	o := newOffice(t, bus, nil)
	o.stop("p1")
	waittest.Until(o, "the first is told", func() bool { return slices.Equal(placements(bus.taken()), []string{"p1"}) })
	o.sender.unfollow()
	o.stop("p2")
	o.sender.committed(engine.Committed{Gap: true})
	waittest.Until(o, "the one behind the gap is told", func() bool { return slices.Equal(placements(bus.taken()), []string{"p1", "p2"}) })
}

// Deliveries that could not be recorded for a while are recorded in commands that do not occupy the core for long.
func TestManyDeliveriesAreRecorded(t *testing.T) {
	o := newOffice(t, &inbox{}, nil)
	o.sender.Rest()
	const many = 2*recordMost + 1
	for i := range many {
		o.stop(fmt.Sprint("p", i))
	}
	r := o.sender.receivers[0]
	err := o.engine.ReadHere(t.Context(), func(v *cell.View) error {
		for _, n := range v.Notices(notice.Bus, 0, 2*many) {
			r.have = append(r.have, n.No)
		}
		return nil
	})
	if err != nil || len(r.have) != many {
		t.Fatalf("%d notices wait, %v", len(r.have), err)
	}
	var recorded atomic.Int64
	defer o.engine.Follow(kernel.Kinds(new(notice.NoticesDelivered)), func(c engine.Committed) {
		for _, e := range c.Events {
			nos := e.Event.(*notice.NoticesDelivered).Nos
			if recorded.Add(int64(len(nos))); len(nos) > recordMost {
				t.Errorf("%d deliveries in one command", len(nos))
			}
		}
	})()
	if !r.flush(t.Context()) || len(r.have) > 0 {
		t.Errorf("%d deliveries are left", len(r.have))
	}
	waittest.Until(t, "all are recorded", func() bool { return recorded.Load() == many })
}
