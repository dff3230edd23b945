package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
)

const topicA = "arn:aws:sns:us-east-1:000000000000:placements"

func TestWebhooksReachTheCore(t *testing.T) {
	s := Defaults()
	if s.Cell().Notify != nil {
		t.Error("the core writes notices without a receiver")
	}
	s.NotifyTopics, s.LimitNotices, s.NotifyMaxAge = topicA+"=https://a.example/x=y", 7, time.Minute
	n := s.Cell().Notify
	if n == nil || n.Bus || len(n.Topics) != 1 || n.Topics[0] != topicA || n.Max != 7 || n.Age != time.Minute || s.Topics()[topicA] != "https://a.example/x=y" {
		t.Errorf("got %+v", n)
	}
	s.NotifyEvents = "https://b.example"
	if !s.Cell().Notify.Bus {
		t.Error("the event bus is not told")
	}
}

func TestDefaultsMakeSense(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
}

func TestSettingsOfTheCoreReachIt(t *testing.T) {
	if got, want := Defaults().Cell(), cell.DefaultConfig(); got != want {
		t.Errorf("defaults: got %+v, want %+v", got, want)
	}
	// Each setting has a value of its own, so that a swapped pair shows.
	got := Settings{
		Reservation: 1, ActivationTimeout: 2, LinkGrace: 3, TokenLifetime: 4, LimitFleets: 5, LimitLocations: 6,
		LimitLocationsPerFleet: 7, LimitComputesPerFleet: 8, LimitProcessesPerCompute: 9, LimitPlayersPerGameSession: 10,
		LimitQueues: 11, LimitRuleSets: 12, LimitConfigurations: 13,
		LimitTicketBytes: 14, LimitPlacementBytes: 15, LimitPlayerSessionBytes: 16, LimitAccessKeys: 17, LimitPlayers: 18, AuditKept: 19,
	}.Cell()
	want := cell.DefaultConfig()
	want.Hosting.Reservation, want.Hosting.Activation, want.Hosting.LinkGrace, want.Hosting.TokenLife = 1, 2, 3, 4
	want.Hosting.FleetsMax, want.Hosting.LocationsMax, want.Hosting.LocationsInFleetMax = 5, 6, 7
	want.Hosting.ComputesInFleetMax, want.Hosting.ProcessesOnComputeMax, want.Hosting.PlayersInGameMax = 8, 9, 10
	want.Hosting.QueuesMax, want.Matchmaking.RuleSetsMax, want.Matchmaking.MatchmakersMax, want.Access.AccessKeysMax = 11, 12, 13, 17
	want.Matchmaking.TicketBytesMax, want.Hosting.PlacementBytesMax, want.Hosting.PlayerSessionBytesMax = 14, 15, 16
	want.PlayerFlow.PlayersMax, want.Audit.Kept = 18, 19
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(*Settings)
		want   []string // all in the message; none: it is fine
	}{
		"all addresses":           {func(s *Settings) { s.Listen = ":8080" }, nil},
		"dev on loopback":         {func(s *Settings) { s.Dev = true }, nil},
		"a clock to be moved":     {func(s *Settings) { s.VirtualClock, s.Dev = true, true }, nil},
		"a clock for anybody":     {func(s *Settings) { s.VirtualClock = true }, []string{"virtual-clock without dev"}},
		"dev on another loopback": {func(s *Settings) { s.Dev, s.Listen = true, "127.8.8.8:0" }, nil},
		"dev on IPv6 loopback":    {func(s *Settings) { s.Dev, s.Listen = true, "[::1]:8080" }, nil},
		"dev on localhost":        {func(s *Settings) { s.Dev, s.Listen = true, "localhost:8080" }, nil},
		"dev on all addresses":    {func(s *Settings) { s.Dev, s.Listen = true, ":8080" }, []string{"listen", "dev", "loopback"}},
		"dev on all of IPv4":      {func(s *Settings) { s.Dev, s.Listen = true, "0.0.0.0:8080" }, []string{"listen", "dev"}},
		"dev on an address":       {func(s *Settings) { s.Dev, s.Listen = true, "192.0.2.1:8080" }, []string{"listen", "dev"}},
		"dev on a name":           {func(s *Settings) { s.Dev, s.Listen = true, "localhost.example.com:8080" }, []string{"listen", "dev"}},
		"no port":                 {func(s *Settings) { s.Listen = "127.0.0.1" }, []string{"listen", "HOST:PORT"}},
		"port too large":          {func(s *Settings) { s.Listen = "127.0.0.1:70000" }, []string{"listen", "70000", "65535"}},
		"no data":                 {func(s *Settings) { s.Data = "" }, []string{"data"}},
		"public URL":              {func(s *Settings) { s.PublicURL = "wss://muster.example.com/game" }, nil},
		"public URL without //":   {func(s *Settings) { s.PublicURL = "muster.example.com:8080" }, []string{"public-url"}},
		"public URL of a file":    {func(s *Settings) { s.PublicURL = "file:///etc" }, []string{"public-url"}},
		"public URL with query":   {func(s *Settings) { s.PublicURL = "https://muster.example.com/?a=b" }, []string{"public-url", "query"}},
		"public URL too long":     {func(s *Settings) { s.PublicURL = "https://" + strings.Repeat("m", 128) }, []string{"public-url", "136", "128"}},
		"certificate without key": {func(s *Settings) { s.TLSCert = "cert.pem" }, []string{"tls-cert", "tls-key", "both"}},
		"ACME": {func(s *Settings) {
			s.TLSACMEEmail, s.PublicURL, s.Listen = "ops@example.com", "https://muster.example.com", ":443"
		}, nil},
		"ACME of this machine": {func(s *Settings) {
			s.TLSACMEEmail, s.PublicURL, s.TLSACMEDirectory = "ops@example.com", "wss://muster.example.com", "http://127.0.0.1:4000/directory"
		}, nil},
		"ACME with all that is wrong": {func(s *Settings) {
			s.TLSACMEEmail, s.TLSCert, s.TLSKey, s.Dev, s.PublicURL, s.TLSACMEDirectory = "nobody", "c", "k", true, "http://10.0.0.5", "http://acme.example.com"
		}, []string{"tls-acme-email \"nobody\"", "with tls-cert", "with dev", "with public-url \"http://10.0.0.5\"", "tls-acme-directory \"http://acme.example.com\"", "with listen"}},
		"ACME for an address":   {func(s *Settings) { s.TLSACMEEmail, s.PublicURL, s.Listen = "o@x.org", "https://192.0.2.1", ":443" }, []string{"public-url", "host name"}},
		"ACME for a short name": {func(s *Settings) { s.TLSACMEEmail, s.PublicURL, s.Listen = "o@x.org", "https://muster", ":443" }, []string{"public-url", "host name"}},
		"ACME for other letters": {func(s *Settings) {
			s.TLSACMEEmail, s.PublicURL, s.Listen = "o@x.org", "https://müster.example.com", ":443"
		}, []string{"public-url", "xn--"}},
		"ACME for a root": {func(s *Settings) {
			s.TLSACMEEmail, s.PublicURL, s.Listen = "o@x.org", "https://muster.example.com.", ":443"
		}, []string{"public-url", "host name"}},
		"authority without ACME":   {func(s *Settings) { s.TLSACMEDirectory = "https://acme.example.com" }, []string{"tls-acme-directory", "tls-acme-email"}},
		"log level":                {func(s *Settings) { s.LogLevel = "loud" }, []string{"log-level", "loud", "debug"}},
		"no time for reservations": {func(s *Settings) { s.Reservation = time.Millisecond }, []string{"reservation", "1ms", "1s"}},
		"shortest token":           {func(s *Settings) { s.TokenLifetime = 5 * time.Minute }, nil},
		"token too short":          {func(s *Settings) { s.TokenLifetime = 4 * time.Minute }, []string{"token-lifetime", "4m0s", "5m0s"}},
		"rates of the cloud":       {func(s *Settings) { s.Limits = "gamelift" }, nil},
		"rates of nobody":          {func(s *Settings) { s.Limits = "many" }, []string{"limits", "many", "gamelift"}},
		"webhooks": {func(s *Settings) {
			s.NotifyEvents, s.NotifyTopics = "https://a.example/hook?key=1", topicA+"=http://127.0.0.1:9/a  "+topicA+".fifo=https://b.example"
		}, nil},
		"webhook of a file":    {func(s *Settings) { s.NotifyEvents = "file:///etc" }, []string{"notify-events", "notify-events"}},
		"topic without URL":    {func(s *Settings) { s.NotifyTopics = topicA }, []string{"notify-topics", "ARN=URL"}},
		"topic that is none":   {func(s *Settings) { s.NotifyTopics = "placements=https://a.example" }, []string{"notify-topics", "ARN=URL"}},
		"topic named twice":    {func(s *Settings) { s.NotifyTopics = topicA + "=https://a.example " + topicA + "=https://b.example" }, []string{"twice"}},
		"topic with a bad URL": {func(s *Settings) { s.NotifyTopics = topicA + "=a.example" }, []string{"notify-topics", "notify-topics"}},
		"no notices":           {func(s *Settings) { s.LimitNotices = 0 }, []string{"limit-notices"}},
		"no fleets":            {func(s *Settings) { s.LimitFleets = 0 }, []string{"limit-fleets", "1"}},
		"two at once":          {func(s *Settings) { s.LimitFleets, s.GCPercent = 0, 0 }, []string{"limit-fleets", "gc-percent"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := Defaults()
			c.change(&s)
			err := s.Check()
			if (err != nil) != (len(c.want) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// Mistakes are reported in the same order in each run.
func TestOrderOfMistakes(t *testing.T) {
	s := Defaults()
	s.ClusterAdvertise, s.Join, s.Observer = "192.0.2.1:1", "token", true
	s.PlayerFlow, s.PartnerListen, s.OperatorListen, s.PlayerOIDCIssuer, s.PlayerOIDCKeys = true, "x", "x", "x", "x"
	want := s.Check().Error()
	for range 20 {
		if got := s.Check().Error(); got != want {
			t.Fatalf("got\n%s\nand\n%s", want, got)
		}
	}
}

func TestBytesText(t *testing.T) {
	for text, want := range map[string]Bytes{"0B": 0, "1B": 1, "1KiB": 1 << 10, "64MiB": 64 << 20, "3GiB": 3 << 30, "1025B": 1025} {
		var got Bytes
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %d, printed as %s, %v; want %d", text, got, got, err, want)
		}
	}
	got := Bytes(1)
	if err := got.UnmarshalText([]byte("0")); err != nil || got != 0 {
		t.Errorf("0: got %d, %v", got, err)
	}
	for _, text := range []string{"", "00", "64", "64MB", "-1B", "1.5GiB", "9999999999GiB", "MiB"} {
		var got Bytes
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

// The URL of a collector may have a token in its path, which no support bundle has: neither as the setting, nor in the log.
func TestCollectorInABundle(t *testing.T) {
	v := Defaults()
	v.OTLPEndpoint = "https://collector.example.com/receiver/v1/otlp/ZaVnC4dhaV39Tn37"
	for _, x := range v.All(func(string) string { return "" }) {
		if x.Name == "otlp-endpoint" && x.Bundled != "set" {
			t.Errorf("the bundle says %q", x.Bundled)
		}
	}
	if !slices.Contains(v.Secrets(), "receiver/v1/otlp/ZaVnC4dhaV39Tn37") {
		t.Errorf("the log keeps its path: %q are removed", v.Secrets())
	}
}

// A person and a machine, or two machines, would have the same name in records and revocations if their sources had the same name.
func TestSourcesOfIdentitiesHaveDifferentNames(t *testing.T) {
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := Defaults()
	s.People = write("people.json", `{"providers": [{"name": "okta", "issuer": "https://acme.okta.com", "clientId": "muster", "roles": {"admin": ["ops"]}}]}`)
	for name, ok := range map[string]bool{"k8s": true, "okta": false, "muster": false} {
		s.WebIdentities = write("issuers.json", `{"issuers": [{"name": "`+name+`", "issuer": "https://k8s.example", "audiences": ["muster"], "rules": [{"subjects": ["a"], "roles": ["backend"]}]}]}`)
		if err := s.Check(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "could be confused") {
			t.Errorf("an issuer with the name %s: %v", name, err)
		}
	}
}
