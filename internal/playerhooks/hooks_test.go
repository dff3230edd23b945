package playerhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/webhook"
)

const key = "the key"

func keysOf() []string { return []string{key} }

// backend starts a studio's backend that answers as a test requires, and returns its URL.
func backend(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func one(t *testing.T, n Name, x Hook) *Hooks {
	t.Helper()
	if x.Timeout == 0 {
		x.Timeout = time.Minute // nothing here waits for it
	}
	h := New(Config{Hooks: map[Name]Hook{n: x}, Concurrency: 4}, keysOf, slog.New(slog.DiscardHandler))
	t.Cleanup(h.Close)
	return h
}

func TestQuestion(t *testing.T) {
	type seen struct {
		header http.Header
		body   []byte
	}
	asked := make(chan seen, 1)
	h := one(t, BeforeInvite, Hook{OnTimeout: Deny, URL: backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- seen{r.Header, body}
		_, _ = io.WriteString(w, `{"allow":false,"message":"not today","later":"fields that nobody knows"}`)
	})})
	_, err := Ask[Verdict](t.Context(), h, BeforeInvite, PlayerInvited{"ann", "pty-1", "bob"})
	if denied, ok := errors.AsType[*Denied](err); !ok || denied.Message != "not today" || denied.Hook != BeforeInvite {
		t.Errorf("the answer is %v", err)
	}
	x := <-asked
	var m struct {
		Hook, ID string
		SentAt   string `json:"sent_at"`
		Data     PlayerInvited
	}
	if err := json.Unmarshal(x.body, &m); err != nil || m.Hook != "BeforeInvite" || m.ID == "" || m.Data != (PlayerInvited{"ann", "pty-1", "bob"}) {
		t.Errorf("the question is %s", x.body)
	}
	if _, err := time.Parse(time.RFC3339, m.SentAt); err != nil {
		t.Error(err)
	}
	signature := x.header.Get(webhook.SignatureHeader)
	var at int64
	if _, err := fmt.Sscanf(signature, "t=%d,", &at); err != nil || webhook.Sign(time.Unix(at, 0), x.body, key) != signature {
		t.Errorf("the signature %q does not fit", signature)
	}
}

func TestHooksThatAreOff(t *testing.T) {
	var none *Hooks
	none.Close()
	other := one(t, BeforeInvite, Hook{URL: "http://127.0.0.1:1", OnTimeout: Deny})
	for _, h := range []*Hooks{none, New(Config{}, keysOf, slog.New(slog.DiscardHandler)), other} {
		if _, err := Ask[Verdict](t.Context(), h, BeforeJoinParty, nil); err != nil || h.On(BeforeJoinParty) {
			t.Errorf("a hook that is off: %v", err)
		}
	}
}

// An unusable answer counts as none: the policy applies.
func TestAnswersThatAreNone(t *testing.T) {
	elsewhere := backend(t, says(`{"allow":true}`))
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"empty":         says(""),
		"no JSON":       says("<html>oops</html>"),
		"a list":        says(`[{"allow":true}]`),
		"no verdict":    says(`{"message":"well"}`),
		"null":          says(`null`),
		"a wrong type":  says(`{"allow":"yes"}`),
		"two answers":   says(`{"allow":true}{"allow":false}`),
		"two verdicts":  says(`{"allow":false,"allow":true}`),
		"the same, odd": says(`{"allow":false,"Allow":true}`),
		"no UTF-8":      says("{\"allow\":true,\"message\":\"\xe9\"}"),
		"too long":      says(`{"allow":true,"message":"` + strings.Repeat(" ", answerMax) + `"}`),
		"an error":      status(500, `{"allow":true}`),
		"no content":    status(204, ""),
		"forbidden":     status(403, `{"allow":true}`),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		},
		"hung up": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
	} {
		url := backend(t, answer)
		if _, err := Ask[Verdict](t.Context(), one(t, BeforeInvite, Hook{URL: url, OnTimeout: Allow}), BeforeInvite, nil); err != nil {
			t.Errorf("%s with ALLOW: %v", name, err)
		}
		_, err := Ask[Verdict](t.Context(), one(t, BeforeInvite, Hook{URL: url, OnTimeout: Deny}), BeforeInvite, nil)
		if silent, ok := errors.AsType[*Silent](err); !ok || silent.Hook != BeforeInvite || strings.Contains(err.Error(), "127.0.0.1") && name != "hung up" {
			t.Errorf("%s with DENY: %v", name, err)
		}
	}
}

// A refusal counts, however long its message is.
func TestLongMessage(t *testing.T) {
	long := strings.Repeat("é", messageMax)
	_, err := Ask[Verdict](t.Context(), one(t, BeforeInvite, Hook{URL: backend(t, says(`{"allow":false,"message":"`+long+`"}`)), OnTimeout: Allow}), BeforeInvite, nil)
	denied, ok := errors.AsType[*Denied](err)
	if !ok || len(denied.Message) == 0 || len(denied.Message) > messageMax || !utf8.ValidString(denied.Message) {
		t.Errorf("%v", err)
	}
}

func TestAdditions(t *testing.T) {
	enter, err := Ask[EnterAnswer](t.Context(), one(t, BeforeEnterMatchmaking, Hook{OnTimeout: Deny, URL: backend(t, says(
		`{"allow":true,"attributes":{"mode":"ranked"},"players":{"ann":{"attributes": {"skill": 12}}}}`))}), BeforeEnterMatchmaking, nil)
	if err != nil || enter.Attributes.Text() != `{"mode":"ranked"}` || enter.Players["ann"].Attributes.Text() != `{"skill":12}` || enter.Players["bob"].Attributes.Text() != "" {
		t.Errorf("%+v, %v", enter, err)
	}
	data, err := Ask[PlayerDataAnswer](t.Context(), one(t, BuildPlayerData, Hook{OnTimeout: Deny, URL: backend(t, says(`{"players":{"ann":"skin=3"}}`))}), BuildPlayerData, nil)
	if err != nil || data.Players["ann"] != "skin=3" {
		t.Errorf("%+v, %v", data, err)
	}
	for name, body := range map[string]string{
		"attributes that are no object": `{"allow":true,"attributes":3}`,
		"attributes that are no UTF-8":  "{\"allow\":true,\"attributes\":{\"a\":\"\xff\"}}",
		"too many attributes":           `{"allow":true,"attributes":{"a":"` + strings.Repeat("x", partyAttributesMax) + `"}}`,
		"of a player":                   `{"allow":true,"players":{"ann":{"attributes":{"a":"` + strings.Repeat("x", playerAttributesMax) + `"}}}}`,
	} {
		if _, err := Ask[EnterAnswer](t.Context(), one(t, BeforeEnterMatchmaking, Hook{OnTimeout: Deny, URL: backend(t, says(body))}), BeforeEnterMatchmaking, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for hook, bodies := range map[Name][]string{
		BuildPlayerData:  {`{"players":{"ann":"` + strings.Repeat("x", playerDataMax+1) + `"}}`, `{"players":{"ann":3}}`},
		ChooseRegions:    {`{"regions":["a","a"]}`, `{"regions":[""]}`, `{"regions":"a"}`},
		BeforeDirectJoin: {`{"allow":true,"max_players":-1}`, `{"allow":true,"reconnect":"SOMETIMES"}`, `{"max_players":2}`},
		DecidePenalty:    {`{}`, `{"decision":"SET","level":-1}`, `{"decision":"SET","lock_ms":99999999999999}`},
	} {
		for _, body := range bodies {
			h := one(t, hook, Hook{OnTimeout: Deny, URL: backend(t, says(body))})
			var err error
			switch hook {
			case BuildPlayerData:
				_, err = Ask[PlayerDataAnswer](t.Context(), h, hook, nil)
			case ChooseRegions:
				_, err = Ask[RegionsAnswer](t.Context(), h, hook, nil)
			case BeforeDirectJoin:
				_, err = Ask[DirectAnswer](t.Context(), h, hook, nil)
			case DecidePenalty:
				_, err = Ask[PenaltyAnswer](t.Context(), h, hook, nil)
			}
			if err == nil {
				t.Errorf("%s: %s: accepted", hook, body)
			}
		}
	}
}

// A slow receiver delays a call only up to the timeout. A player who disconnects meanwhile does not count against the receiver.
func TestSlowReceiver(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 10)
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	_, err := Ask[Verdict](t.Context(), one(t, BeforeInvite, Hook{URL: url, OnTimeout: Deny, Timeout: 20 * time.Millisecond}), BeforeInvite, nil)
	if _, silent := errors.AsType[*Silent](err); !silent || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with DENY: %v", err)
	}
	if _, err := Ask[Verdict](t.Context(), one(t, BeforeInvite, Hook{URL: url, OnTimeout: Allow, Timeout: 20 * time.Millisecond}), BeforeInvite, nil); err != nil {
		t.Errorf("with ALLOW: %v", err)
	}
	for len(asked) > 0 {
		<-asked
	}
	h := one(t, BeforeInvite, Hook{URL: url, OnTimeout: Allow})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := Ask[Verdict](ctx, h, BeforeInvite, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("of a player who is gone: %v", err)
	}
	if c := &h.now.Get().hooks[BeforeInvite].circuit; c.failures != 0 {
		t.Errorf("it counts as a failure: %d", c.failures)
	}
}

// The number of requests that wait for a receiver is bounded.
func TestCrowd(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 10)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		_, _ = io.WriteString(w, `{"allow":true}`)
	})
	h := one(t, BeforeInvite, Hook{URL: url, OnTimeout: Deny})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := Ask[Verdict](t.Context(), h, BeforeInvite, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-asked
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := h.now.Get().hooks[BeforeInvite].ask(ctx, BeforeInvite, nil, nil); !errors.Is(err, errCrowded) {
		t.Errorf("the fifth: %v", err)
	}
	if len(asked) > 0 {
		t.Error("the fifth was sent")
	}
	close(release)
	all.Wait()
}

// Observers see the outcomes of the requests.
func TestNumbers(t *testing.T) {
	answers := make(chan string, 1)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		answer := <-answers
		if answer == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, answer)
	})
	h := one(t, BeforeInvite, Hook{URL: url, OnTimeout: Allow})
	ask := func(answer, player string) {
		answers <- answer
		_, _ = Ask[Verdict](t.Context(), h, BeforeInvite, PlayerInvited{PlayerID: player})
	}
	ask(`{"allow":true}`, "ann")
	ask(`{"allow":false}`, "ann")
	ask("oops", "ann")
	for i := range failuresMax {
		ask("", fmt.Sprint("player", i))
	}
	for range 2 { // which get no answer
		_, _ = Ask[Verdict](t.Context(), h, BeforeInvite, nil)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetCounter() != nil {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
			if h := m.GetHistogram(); h != nil && h.GetSampleCount() != 3+failuresMax {
				t.Errorf("%d waits", h.GetSampleCount())
			}
		}
	}
	want := map[string]float64{"BeforeInvite ALLOWED": 1, "BeforeInvite DENIED": 1, "BeforeInvite UNUSABLE": 1, "BeforeInvite SILENT": failuresMax, "BeforeInvite SPARED": 2}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if (*Hooks)(nil).Collectors() != nil {
		t.Error("numbers of no hooks")
	}
}
