package service

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/waittest"
)

func start(t *testing.T, s settings.Settings) *Service {
	t.Helper()
	s.Listen = "127.0.0.1:0"
	x, err := Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Stop(t.Context()) })
	return x
}

func clientOf(x *Service, key, secret string) *cloudwatch.Client {
	return cloudwatch.New(cloudwatch.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + x.Addr().String()), Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""), RetryMaxAttempts: 1,
	})
}

// The kept metrics survive a restart, and the SDK for Go reads them.
func TestMetricsAreKept(t *testing.T) {
	s := settings.Defaults()
	s.Data, s.Dev, s.VirtualClock = t.TempDir(), true, true
	x := start(t, s)
	began := x.Now()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(x.Engine().Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Timeout: 10 * time.Minute}}))
	do(x.Engine().Do(t.Context(), &hosting.StartPlacement{Placement: placement.Placement{ID: "p", Queue: "q", PlayersMax: 2}}))
	do(x.Advance(t.Context(), time.Minute))
	waittest.Until(t, "a minute is written", func() bool { return x.kept.Last() > 0 })
	do(x.Stop(t.Context()))
	x = start(t, s)
	out, err := clientOf(x, "any", "any").GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/GameLift"), MetricName: aws.String("PlacementsStarted"), Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: aws.String("q")}},
		StartTime: aws.Time(began.Add(-time.Hour)), EndTime: aws.Time(began.Add(time.Hour)), Period: aws.Int32(7200), Statistics: []types.Statistic{types.StatisticSum},
	})
	do(err)
	sum := 0.0
	for _, p := range out.Datapoints {
		sum += *p.Sum
	}
	if sum != 1 {
		t.Errorf("%v placements were started, want 1: %+v", sum, out.Datapoints)
	}
}

func TestWhoMayReadMetrics(t *testing.T) {
	s := settings.Defaults()
	s.Data = t.TempDir()
	x := start(t, s)
	list := func(role access.Role, secret string) string {
		t.Helper()
		key, err := x.Keys().Create(t.Context(), access.Actor{}, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		if secret == "" {
			secret = key.Secret
		}
		_, err = clientOf(x, key.ID, secret).ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{})
		if refused, ok := errors.AsType[smithy.APIError](err); ok {
			return refused.ErrorCode()
		}
		if err != nil {
			return err.Error()
		}
		return ""
	}
	for _, c := range []struct {
		role         access.Role
		secret, want string
	}{{access.ReadOnly, "", ""}, {access.Admin, "", ""}, {access.Client, "", "AccessDenied"}, {access.Admin, "wrong", "InvalidSignatureException"}} {
		if got := list(c.role, c.secret); got != c.want {
			t.Errorf("%s with secret %q: got %q, want %q", c.role, c.secret, got, c.want)
		}
	}
}

// HEAD is answered where GET is, as RFC 9110, 9.1 requires; tools that watch a service ask with it.
func TestHeadWithoutBody(t *testing.T) {
	s := settings.Defaults()
	s.Data, s.Dev = t.TempDir(), true
	x := start(t, s)
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		answer, err := http.Head("http://" + x.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: %s %v", path, answer.Status, answer.Header)
		}
	}
}

// The parts of a query that are not names of metrics: parts of a histogram, and words of the language.
var (
	metricName = regexp.MustCompile(`\b(?:muster|gamelift|process|go)_[a-z0-9_]+`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	suffix     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkQuery checks that a query is balanced, and that the service has its metrics.
func checkQuery(t *testing.T, where, query string, names []string) {
	t.Helper()
	bare := quoted.ReplaceAllString(query, "")
	var open []rune
	for _, r := range bare {
		switch r {
		case '(', '[', '{':
			open = append(open, r)
		case ')', ']', '}':
			want := map[rune]rune{')': '(', ']': '[', '}': '{'}[r]
			if len(open) == 0 || open[len(open)-1] != want {
				t.Errorf("%s: unbalanced %c: %s", where, r, query)
				return
			}
			open = open[:len(open)-1]
		}
	}
	found := metricName.FindAllString(bare, -1)
	if len(open) > 0 || len(found) == 0 {
		t.Errorf("%s: unbalanced, or without a metric: %s", where, query)
	}
	for _, name := range found {
		if !slices.Contains(names, name) && !slices.Contains(names, suffix.ReplaceAllString(name, "")) {
			t.Errorf("%s: the service has no metric %s", where, name)
		}
	}
}

func TestDashboardsAndAlerts(t *testing.T) {
	s := settings.Defaults()
	s.Data, s.Dev, s.PlayerFlow = t.TempDir(), true, true
	s.AuditExport = "syslog+tcp://127.0.0.1:1" // nothing is there
	names := start(t, s).metrics.Names()

	dashboards, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatal("no dashboards", err)
	}
	for _, path := range dashboards {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title  string
			Panels []struct {
				Title, Type string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &board); err != nil {
			t.Fatal(path, err)
		}
		for _, p := range board.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %s shows nothing", path, p.Title)
			}
			for _, target := range p.Targets {
				checkQuery(t, path+": "+p.Title, target.Expr, names)
			}
		}
	}

	rules, err := os.ReadFile("../../deploy/prometheus/muster-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	alert, alerts, books := "", 0, 0
	for line := range strings.Lines(string(rules)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "- alert":
			alert = value
			alerts++
			if !strings.Contains(string(page), "\n## "+alert+"\n") {
				t.Errorf("docs/alerts.md has no chapter %s", alert)
			}
		case "expr":
			checkQuery(t, alert, value, names)
		case "runbook_url":
			books++
			if !strings.HasSuffix(value, "/docs/alerts.md#"+strings.ToLower(alert)) {
				t.Errorf("%s: runbook_url is %s", alert, value)
			}
		}
	}
	if alerts == 0 || alerts != books || strings.Count(string(page), "\n## ") != alerts {
		t.Errorf("%d alerts, %d links to chapters, %d chapters", alerts, books, strings.Count(string(page), "\n## "))
	}
}
