package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Conversations are recorded requests of clients to the service of an earlier release, with its answers: docs/upgrade.md. They are recorded once for each release
// and each client. Every later build must give the same answers to the same requests: with each recorded member, of the same type, and with the
// same value unless it is an id, a time or a text for people.

// exchange is one request with its answer.
type exchange struct {
	Method, Path string
	Header       map[string]string // the relevant ones
	Body         string            `json:",omitempty"`
	CBOR         string            `json:",omitempty"` // in base64, instead of Body

	Status       int
	Answer       string `json:",omitempty"`
	AnswerCBOR   string `json:",omitempty"` // in base64, instead of Answer
	AnswerHeader map[string]string
}

const conversations = "testdata/conversations"

// spoken are the headers of requests and answers that are part of the protocols.
var spoken = []string{"Accept", "Content-Type", "X-Amz-Target", "Smithy-Protocol", "X-Amzn-Query-Mode", "X-Amzn-Errortype", "X-Request-Id"}

func TestConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(conversations + "/*.json")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no conversation in " + conversations)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			must(t, err)
			var all []exchange
			must(t, json.Unmarshal(text, &all))
			replay(t, startService(t, "--player-flow"), all)
		})
	}
}

// TestRecordConversations writes the conversations of a release: CONVERSATIONS=0.1.0 MUSTER_RELEASE=path go test ./e2e -run TestRecordConversations
func TestRecordConversations(t *testing.T) {
	release, binary := os.Getenv("CONVERSATIONS"), os.Getenv("MUSTER_RELEASE")
	if release == "" {
		// Without a release to record this tests the tools: what was just recorded is answered in the same way, and a member that is gone is found.
		checkReplay(t)
		return
	}
	for _, said := range []struct {
		client, story string
		make          func(*service) teller
	}{
		{"sdk-go", "aliases", func(s *service) teller { return sdkGo{s.apiWith("any", "any")} }},
		{"sdk-go", "errors", func(s *service) teller { return sdkGo{s.apiWith("any", "any")} }},
		{"aws-cli", "aliases", func(s *service) teller { return newCLI(s) }},
	} {
		s := newService(t, "--player-flow")
		s.binary = binary
		s.start()
		r := record(t, s)
		tellStory(t, s, said.make(r.service()), "stories/"+said.story+".json")
		r.write(release + "-" + said.client + "-" + said.story)
	}
	s := newService(t, "--player-flow")
	s.binary = binary
	s.start()
	r := record(t, s)
	friends(t, r.server.URL)
	r.write(release + "-players")
}

// checkReplay records a conversation with this build, and replays it unchanged and altered.
func checkReplay(t *testing.T) {
	r := record(t, startService(t, "--player-flow"))
	tellStory(t, r.of, sdkGo{r.service().apiWith("any", "any")}, "stories/aliases.json")
	friends(t, r.server.URL)
	fresh := startService(t, "--player-flow")
	replay(t, fresh, r.all)

	for i := range r.all {
		x := &r.all[i]
		if x.Answer == "" || x.Status != http.StatusOK {
			continue
		}
		var o map[string]any
		must(t, json.Unmarshal([]byte(x.Answer), &o))
		o["member_of_an_earlier_release"] = "x"
		text, err := json.Marshal(o)
		must(t, err)
		x.Answer = string(text)
		if wrong := differences(t, startService(t, "--player-flow"), r.all); !strings.Contains(wrong, "member_of_an_earlier_release is gone") {
			t.Errorf("an answer that lacks a member passes: %q", wrong)
		}
		return
	}
	t.Error("no answer in JSON was recorded")
}

// friends plays a conversation of two players' clients: they meet in a party and leave it.
func friends(t *testing.T, url string) {
	said := 0
	call := func(token, call, body string) object {
		r, err := http.NewRequest(http.MethodPost, url+"/playerflow/v1/player/"+call, strings.NewReader(body))
		must(t, err)
		said++
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Request-Id", fmt.Sprintf("said-%d", said))
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		must(t, err)
		o := object{}
		must(t, json.Unmarshal(text, &o))
		return o
	}
	login := func(player string) string {
		return call("", "Session.Login", `{"provider": "dev", "token": "{\"player_id\": \"`+player+`\"}"}`).text("access_token")
	}
	ann, bob := login("ann"), login("bob")
	code := call(ann, "Party.CreateParty", `{"attributes": {"mode": "duo"}}`).text("party", "invite_code")
	call(bob, "Party.JoinPartyByInviteCode", `{"code": "`+code+`"}`)
	call(bob, "Party.KickPlayer", `{"player_id": "ann"}`) // refused
	call(ann, "Session.GetFlow", `{}`)
	call(bob, "Party.LeaveParty", `{}`)
	call(ann, "Party.LeaveParty", `{}`)
	call(ann, "Session.Logout", `{}`)
}

// recorder is a recording proxy in front of a service.
type recorder struct {
	t      *testing.T
	of     *service
	server *httptest.Server
	mu     sync.Mutex
	all    []exchange
}

func record(t *testing.T, s *service) *recorder {
	r := &recorder{t: t, of: s}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// service returns the service behind the recorder, for clients.
func (r *recorder) service() *service {
	return &service{t: r.t, data: r.of.data, address: strings.TrimPrefix(r.server.URL, "http://"), logs: r.of.logs}
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock() // one exchange at a time
	defer r.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	x := exchange{Method: q.Method, Path: q.URL.RequestURI(), Header: map[string]string{}, AnswerHeader: map[string]string{}}
	for _, name := range append(spoken, "Authorization") {
		if value := q.Header.Get(name); value != "" && !strings.HasPrefix(value, "AWS4-") { // in development mode nothing has to be signed
			x.Header[name] = value
		}
	}
	x.Body, x.CBOR = textOrCBOR(body, q.Header)
	status, header, answer := x.send(r.t, r.of, x.Header, body)
	x.Status = status
	for _, name := range spoken {
		if value := header.Get(name); value != "" {
			x.AnswerHeader[name] = value
		}
	}
	x.Answer, x.AnswerCBOR = textOrCBOR(answer, header)
	r.all = append(r.all, x)
	maps.Copy(w.Header(), header)
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

func textOrCBOR(body []byte, h http.Header) (text, encoded string) {
	if strings.Contains(h.Get("Content-Type"), "cbor") {
		return "", base64.StdEncoding.EncodeToString(body)
	}
	return string(body), ""
}

func (x *exchange) send(t *testing.T, s *service, header map[string]string, body []byte) (int, http.Header, []byte) {
	q, err := http.NewRequest(x.Method, s.url()+x.Path, bytes.NewReader(body))
	must(t, err)
	for name, value := range header {
		q.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(q)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, answer.Header, text
}

func (r *recorder) write(name string) {
	text, err := json.MarshalIndent(r.all, "", "  ")
	must(r.t, err)
	must(r.t, os.MkdirAll(conversations, 0o755))
	must(r.t, os.WriteFile(filepath.Join(conversations, name+".json"), append(text, '\n'), 0o644))
}

func replay(t *testing.T, s *service, all []exchange) {
	t.Helper()
	if wrong := differences(t, s, all); wrong != "" {
		t.Error(wrong)
	}
}

// differences repeats the requests of a conversation, and describes how the answers differ.
func differences(t *testing.T, s *service, all []exchange) string {
	t.Helper()
	known := translation{}
	var wrong []string
	for i := range all {
		x := &all[i]
		header := map[string]string{}
		for name, value := range x.Header {
			header[name] = known.translate(value)
		}
		body := []byte(known.translate(x.Body))
		if x.CBOR != "" {
			encoded, err := cbor.Marshal(known.translateAll(decoded(t, "", x.CBOR)))
			must(t, err)
			body = encoded
		}
		status, answered, answer := x.send(t, s, header, body)
		what := fmt.Sprintf("request %d, %s %s", i+1, x.Path, x.Header["X-Amz-Target"])
		if status != x.Status {
			wrong = append(wrong, fmt.Sprintf("%s: status %d, want %d: %s", what, status, x.Status, answer))
			continue
		}
		for name, want := range x.AnswerHeader {
			if got := answered.Get(name); got != want && name != "X-Request-Id" {
				wrong = append(wrong, fmt.Sprintf("%s: header %s is %q, want %q", what, name, got, want))
			}
		}
		text, encoded := textOrCBOR(answer, answered)
		for _, found := range known.compare("answer", decoded(t, x.Answer, x.AnswerCBOR), decoded(t, text, encoded)) {
			wrong = append(wrong, what+": "+found)
		}
	}
	return strings.Join(wrong, "\n")
}

// decoded returns a body as JSON values.
func decoded(t *testing.T, text, encoded string) (v any) {
	t.Helper()
	if encoded != "" {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		must(t, err)
		if len(raw) == 0 {
			return nil
		}
		mode, err := cbor.DecOptions{DefaultMapType: nil, TimeTag: cbor.DecTagIgnored}.DecMode()
		must(t, err)
		must(t, mode.Unmarshal(raw, &v))
		return named(v)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// named converts the maps and numbers of CBOR into those of JSON.
func named(v any) any {
	switch v := v.(type) {
	case map[any]any:
		o := map[string]any{}
		for name, member := range v {
			o[fmt.Sprint(name)] = named(member)
		}
		return o
	case []any:
		for i := range v {
			v[i] = named(v[i])
		}
		return v
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case float32:
		return float64(v)
	case time.Time:
		return float64(v.UnixMilli()) / 1000
	}
	return v
}

// translation has the ids of this service by those of the conversation.
type translation map[string]string

func (k translation) translate(text string) string {
	// The longest first: an ARN has the id of its fleet in it.
	for _, old := range slices.SortedFunc(maps.Keys(k), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, old, k[old])
	}
	return text
}

func (k translation) translateAll(v any) any {
	switch v := v.(type) {
	case string:
		return k.translate(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = k.translateAll(v[name])
		}
		return v
	case []any:
		for i := range v {
			v[i] = k.translateAll(v[i])
		}
		return v
	}
	return v
}

var (
	// made are the parts of texts that a service makes: UUIDs, tokens, times.
	made = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z|[A-Za-z0-9_-]{20,}|127\.0\.0\.1:\d+`)
	// madeMembers are members that are made as a whole.
	madeMembers = []string{"invite_code", "NextToken"}
	// forPeople are members whose text may change.
	forPeople = []string{"message", "Message", "details"}
)

// compare returns the members of an answer that differ from those of an earlier one, and learns the ids.
func (k translation) compare(path string, old, now any) (wrong []string) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch old := old.(type) {
	case map[string]any:
		is, ok := now.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, want an object", path, now)}
		}
		for _, member := range slices.Sorted(maps.Keys(old)) {
			if slices.Contains(forPeople, member) && is[member] != nil {
				continue
			}
			value, ok := is[member]
			if !ok {
				wrong = append(wrong, path+"."+member+" is gone")
				continue
			}
			wrong = append(wrong, k.compare(path+"."+member, old[member], value)...)
		}
	case []any:
		is, ok := now.([]any)
		if !ok || len(is) != len(old) {
			return []string{fmt.Sprintf("%s is %v, want %d elements like %v", path, now, len(old), old)}
		}
		for i := range old {
			wrong = append(wrong, k.compare(path, old[i], is[i])...)
		}
	case float64:
		is, ok := now.(float64)
		if !ok || is != old && old < 1e9 { // above that it is a time
			return []string{fmt.Sprintf("%s is %v, want %v", path, now, old)}
		}
	case string:
		is, ok := now.(string)
		if !ok || !k.same(name, old, is) {
			return []string{fmt.Sprintf("%s is %v, want %q", path, now, k.translate(old))}
		}
	default:
		if old != now {
			return []string{fmt.Sprintf("%s is %v, want %v", path, now, old)}
		}
	}
	return wrong
}

// same reports whether two texts differ at most in parts that the service generates, which it learns.
func (k translation) same(name, old, now string) bool {
	if k.translate(old) == now {
		return true
	}
	if slices.Contains(madeMembers, name) {
		k[old] = now
		return true
	}
	if made.ReplaceAllString(old, "*") != made.ReplaceAllString(now, "*") {
		return false
	}
	was, is := made.FindAllString(old, -1), made.FindAllString(now, -1)
	for i := range was {
		if was[i] != is[i] {
			k[was[i]] = is[i]
		}
	}
	return len(was) > 0
}
