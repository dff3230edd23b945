package gameclient

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStartMatchmakingSendsWhatIsSet(t *testing.T) {
	c := newCloud(t)
	c.answer("StartMatchmaking", members{"MatchmakingTicket": members{"TicketId": "t-1", "Status": "QUEUED", "ConfigurationName": "duo", "EstimatedWaitTime": 9}})
	ticket, err := c.client(nil).StartMatchmaking(t.Context(), StartMatchmakingRequest{
		TicketID: "t-1", Configuration: "duo", Players: []MatchPlayer{{
			ID: "ann", Team: "red", LatencyMilliseconds: map[string]int{"custom-home": 12},
			Attributes: map[string]any{"mode": "siege", "skill": 12.5, "level": 3, "maps": []string{"a", "b"}, "weights": map[string]float64{"k": 1.5},
				"raw": json.RawMessage(`{"SL":["x"]}`)},
		}, {ID: "bob"}},
	})
	if err != nil || ticket.ID != "t-1" || ticket.Status != TicketQueued || ticket.EstimatedWait != 9*time.Second {
		t.Errorf("got %+v, %v", ticket, err)
	}
	sent(t, c, "StartMatchmaking", members{"TicketId": "t-1", "ConfigurationName": "duo", "Players": []any{
		members{"PlayerId": "ann", "Team": "red", "LatencyInMs": members{"custom-home": uint64(12)}, "PlayerAttributes": members{
			"mode": members{"S": "siege"}, "skill": members{"N": 12.5}, "level": members{"N": 3.0}, "maps": members{"SL": []any{"a", "b"}},
			"weights": members{"SDM": members{"k": 1.5}}, "raw": members{"SL": []any{"x"}}}},
		members{"PlayerId": "bob"},
	}})
	c.answer("StopMatchmaking", members{})
	c.answer("AcceptMatch", members{})
	if err := c.client(nil).AcceptMatch(t.Context(), AcceptMatchRequest{"t-1", []string{"ann", "bob"}, Reject}); err != nil {
		t.Error(err)
	}
	sent(t, c, "AcceptMatch", members{"TicketId": "t-1", "PlayerIds": []any{"ann", "bob"}, "AcceptanceType": "REJECT"})
	if err := c.client(nil).StopMatchmaking(t.Context(), "t-1"); err != nil {
		t.Error(err)
	}
	sent(t, c, "StopMatchmaking", members{"TicketId": "t-1"})
}

func TestMatchmakingChecks(t *testing.T) {
	c := newCloud(t)
	client := c.client(nil)
	with := func(value any) StartMatchmakingRequest {
		return StartMatchmakingRequest{Configuration: "duo", Players: []MatchPlayer{{ID: "ann", Attributes: map[string]any{"a": value}}}}
	}
	for _, x := range []struct {
		request StartMatchmakingRequest
		field   string
	}{
		{StartMatchmakingRequest{Players: []MatchPlayer{{ID: "ann"}}}, "Configuration"},
		{StartMatchmakingRequest{Configuration: "duo"}, "Players"},
		{StartMatchmakingRequest{Configuration: "duo", Players: []MatchPlayer{{ID: "ann"}, {}}}, "Players[1].ID"},
		{StartMatchmakingRequest{Configuration: "duo", Players: []MatchPlayer{{ID: "ann", LatencyMilliseconds: map[string]int{"home": 1 << 32}}}},
			"Players[0].LatencyMilliseconds[home]"}, // not 0, which it is in 32 bits
		{StartMatchmakingRequest{Configuration: "duo", Players: []MatchPlayer{{ID: "ann", LatencyMilliseconds: map[string]int{"home": 0}}}},
			"Players[0].LatencyMilliseconds[home]"},
		{with(nil), "Players[0].Attributes[a]"},
		{with(true), "Players[0].Attributes[a]"},
		{with(math.NaN()), "Players[0].Attributes[a]"},
		{with(json.RawMessage(`{}`)), "Players[0].Attributes[a]"},
		{with(json.RawMessage(`{"S":"x","N":1}`)), "Players[0].Attributes[a]"},
		{with(json.RawMessage(`{"X":"x"}`)), "Players[0].Attributes[a]"},
		{with(json.RawMessage(`{"N":"x"}`)), "Players[0].Attributes[a]"},
		{with(json.RawMessage(`x`)), "Players[0].Attributes[a]"},
	} {
		_, err := client.StartMatchmaking(t.Context(), x.request)
		invalidField(t, x.field, err, x.field)
	}
	for field, r := range map[string]AcceptMatchRequest{
		"TicketID":     {PlayerIDs: []string{"ann"}, Answer: Accept},
		"PlayerIDs":    {TicketID: "t-1", Answer: Accept},
		"PlayerIDs[0]": {TicketID: "t-1", PlayerIDs: []string{""}, Answer: Accept},
		"Answer":       {TicketID: "t-1", PlayerIDs: []string{"ann"}},
	} {
		invalidField(t, field, client.AcceptMatch(t.Context(), r), field)
	}
	invalidField(t, "stop", client.StopMatchmaking(t.Context(), ""), "TicketID")
	invalidField(t, "poll", client.NewTracker(MatchEvents{}, TrackerOptions{}).StartPolling("t-1", ""), "PlayerID")
	if asked := c.operations(); asked != "" {
		t.Errorf("sent %s, want nothing", asked)
	}
}

// diary is what a tracker has told.
type diary struct {
	mu   sync.Mutex
	told []string
	end  chan struct{}
}

func (d *diary) note(what string, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, what)
	if last {
		close(d.end)
	}
}

func (d *diary) events() MatchEvents {
	d.end = make(chan struct{})
	return MatchEvents{
		OnAcceptance: func(Ticket) { d.note("acceptance", false) },
		OnComplete: func(_ Ticket, s Seat, err error) {
			switch {
			case errors.Is(err, ErrNotMatched):
				d.note("not matched", true)
			case err != nil:
				d.note("complete, not joined", true)
			default:
				d.note("complete "+s.PlayerSessionID, true)
			}
		},
		OnFailure: func(t Ticket) { d.note("failure "+string(t.Status)+" "+t.StatusReason, true) },
		OnError:   func(string, error) { d.note("error", false) },
	}
}

// Each row of what DescribeMatchmaking may answer, one look after the other.
func TestTracker(t *testing.T) {
	matched := members{"GameSessionArn": testGame, "IpAddress": "127.0.0.1", "DnsName": "host.example", "Port": 7777,
		"MatchedPlayerSessions": []members{{"PlayerId": "ann", "PlayerSessionId": testSeat}}}
	for name, x := range map[string]struct {
		looks   []string // statuses; "!" is an error, "?" no ticket
		options TrackerOptions
		player  string
		fail    error
		want    string
	}{
		"completed":           {[]string{"QUEUED", "SEARCHING", "PLACING", "COMPLETED"}, TrackerOptions{}, "ann", nil, "complete psess-1"},
		"not listed":          {[]string{"COMPLETED"}, TrackerOptions{}, "bob", nil, "not matched"},
		"no connection":       {[]string{"COMPLETED"}, TrackerOptions{}, "ann", errors.New("unreachable"), "complete, not joined"},
		"timed out":           {[]string{"SEARCHING", "TIMED_OUT"}, TrackerOptions{}, "ann", nil, "failure TIMED_OUT because"},
		"failed":              {[]string{"FAILED"}, TrackerOptions{}, "ann", nil, "failure FAILED because"},
		"cancelled":           {[]string{"CANCELLED"}, TrackerOptions{}, "ann", nil, "failure CANCELLED because"},
		"asked once":          {[]string{"REQUIRES_ACCEPTANCE", "REQUIRES_ACCEPTANCE", "PLACING", "COMPLETED"}, TrackerOptions{}, "ann", nil, "acceptance, complete psess-1"},
		"asked for each":      {[]string{"REQUIRES_ACCEPTANCE", "SEARCHING", "REQUIRES_ACCEPTANCE", "FAILED"}, TrackerOptions{}, "ann", nil, "acceptance, acceptance, failure FAILED because"},
		"asked at every look": {[]string{"REQUIRES_ACCEPTANCE", "REQUIRES_ACCEPTANCE", "FAILED"}, TrackerOptions{RepeatAcceptance: true}, "ann", nil, "acceptance, acceptance, failure FAILED because"},
		"errors":              {[]string{"!", "?", "!", "COMPLETED"}, TrackerOptions{}, "ann", nil, "error, error, error, complete psess-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			looks := x.looks
			c.on("DescribeMatchmaking", func(members) (members, string) {
				status := looks[0]
				if len(looks) > 1 {
					looks = looks[1:]
				}
				switch status {
				case "!":
					return nil, "InternalServiceException"
				case "?":
					return members{"TicketList": []members{}}, ""
				}
				ticket := members{"TicketId": "t-1", "Status": status, "StatusReason": "because"}
				if status == "COMPLETED" {
					ticket["GameSessionConnectionInfo"] = matched
				}
				return members{"TicketList": []members{ticket}}, ""
			})
			var d diary
			x.options.Interval = time.Millisecond
			tracker := c.client(&wire{fail: x.fail}).NewTracker(d.events(), x.options)
			defer tracker.Close()
			if err := tracker.StartPolling("t-1", x.player); err != nil {
				t.Fatal(err)
			}
			<-d.end
			if got := strings.Join(d.told, ", "); got != x.want {
				t.Errorf("told %q, want %q", got, x.want)
			}
		})
	}
}

func TestTrackerStops(t *testing.T) {
	c := newCloud(t)
	c.answer("DescribeMatchmaking", members{"TicketList": []members{{"TicketId": "t-1", "Status": "REQUIRES_ACCEPTANCE"}}})
	stopped := make(chan struct{})
	var tracker *Tracker
	tracker = c.client(nil).NewTracker(MatchEvents{OnAcceptance: func(ticket Ticket) {
		tracker.StopPolling(ticket.ID) // from inside an event
		close(stopped)                 // a second event would panic
	}}, TrackerOptions{Interval: time.Microsecond, RepeatAcceptance: true})
	if err := tracker.StartPolling("t-1", "ann"); err != nil {
		t.Fatal(err)
	}
	<-stopped
	tracker.StopPolling("t-1") // and again

	c.refuse("DescribeMatchmaking", "NotFoundException")
	errs := make(chan error, 10)
	tracker = c.client(nil).NewTracker(MatchEvents{OnError: func(_ string, err error) { errs <- err }}, TrackerOptions{Interval: time.Hour})
	if err := tracker.StartPolling("t-2", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := tracker.StartPolling("t-2", "ann"); !errors.Is(err, ErrTracked) {
		t.Errorf("the same ticket: got %v, want ErrTracked", err)
	}
	if err := tracker.StartPolling("t-3", "ann"); err != nil {
		t.Errorf("another ticket: got %v", err)
	}
	tracker.Close()
	if err := tracker.StartPolling("t-2", "ann"); err != nil {
		t.Errorf("after all were forgotten: got %v", err)
	}
	tracker.Close()
}

// A ticket that cannot be looked at any more is given up after so many errors.
func TestTrackerGivesUp(t *testing.T) {
	c := newCloud(t)
	c.refuse("DescribeMatchmaking", "NotFoundException")
	errs := make(chan error, 10)
	tracker := c.client(nil).NewTracker(MatchEvents{OnError: func(_ string, err error) { errs <- err }},
		TrackerOptions{Interval: time.Microsecond, MaxErrors: 3})
	defaults := c.client(nil).NewTracker(MatchEvents{}, TrackerOptions{Interval: -1, MaxErrors: 1})
	if err := defaults.StartPolling("t-2", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := tracker.StartPolling("t-1", "ann"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-errs
	}
	for errors.Is(tracker.StartPolling("t-1", "ann"), ErrTracked) { // until it is forgotten
		time.Sleep(time.Millisecond)
	}
	tracker.Close()
}
