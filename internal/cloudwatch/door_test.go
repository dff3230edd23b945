package cloudwatch

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/series"
)

const start = 29_000_040 // a minute in 2025, the first of an hour

// scene is a door with kept metrics: fleet-1 has 1, 2, … active instances in the minutes from start on, fleet-2 has 10 times as many.
type scene struct {
	*testing.T
	store  *series.Store
	role   identity.Role
	now    int64
	server *httptest.Server
	client *cloudwatch.Client
}

func newScene(t *testing.T, minutes int64) *scene {
	t.Helper()
	s := &scene{T: t, role: identity.ReadOnly, now: start + minutes}
	var err error
	if s.store, err = series.Open(series.Options{Dir: "metrics", FS: vfs.NewMem(), BytesMax: 1 << 30, SeriesMax: 10_000, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	for i := range minutes {
		var points []series.Point
		for n, fleet := range []string{"fleet-1", "fleet-2"} {
			points = append(points, series.Point{
				Key:  series.MakeKey("ActiveInstances", series.Dimension{Name: "FleetId", Value: fleet}, series.Dimension{Name: "Location", Value: "custom-a"}),
				Stat: series.Of(float64(i+1) * float64(1+9*n)),
			})
		}
		points = append(points, series.Point{Key: series.MakeKey("TimeToMatch", series.Dimension{Name: "ConfigurationName", Value: "duel"}), Stat: series.Stat{Count: 4, Sum: 10, Min: 1, Max: 5.5}})
		if err := s.store.Append(start+i, points); err != nil {
			t.Fatal(err)
		}
	}
	door := NewDoor(Config{
		Store: s.store, Calls: callstats.New(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(s.now*60, 0) },
		Signed: func(_ http.ResponseWriter, r *http.Request, service string, most int64) (identity.Principal, []byte, *gamelift.Refused) {
			if service != "monitoring" {
				t.Errorf("signed for %s", service)
			}
			body, err := io.ReadAll(io.LimitReader(r.Body, most))
			if err != nil {
				t.Error(err)
			}
			return identity.Principal{ID: "key", Role: s.role}, body, nil
		},
	})
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Serves(r) {
			t.Errorf("%s %s is not for this door", r.Method, r.URL)
		}
		door.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	s.client = cloudwatch.New(cloudwatch.Options{
		Region: "us-east-1", BaseEndpoint: &s.server.URL, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), RetryMaxAttempts: 1,
	})
	return s
}

func at(minute int64) *time.Time { return new(timeOf(minute)) }

func dims(pairs ...string) (all []types.Dimension) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, types.Dimension{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return all
}

func activeInstances(id, fleet string, period int32, stat string) types.MetricDataQuery {
	return types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{Period: &period, Stat: &stat, Metric: &types.Metric{
		Namespace: aws.String(Namespace), MetricName: aws.String("ActiveInstances"), Dimensions: dims("Location", "custom-a", "FleetId", fleet),
	}}}
}

func minutesOf(times []time.Time) (all []int64) {
	for _, t := range times {
		all = append(all, t.Unix()/60-start)
	}
	return all
}

func TestGetMetricData(t *testing.T) {
	s := newScene(t, 20)
	out, err := s.client.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: at(start + 5), EndTime: at(start + 15), ScanBy: types.ScanByTimestampAscending,
		MetricDataQueries: []types.MetricDataQuery{activeInstances("a", "fleet-1", 300, "Average"), activeInstances("b", "fleet-2", 300, "Maximum"), activeInstances("c", "fleet-3", 60, "Sum")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{8, 13}, {100, 150}, nil} {
		r := out.MetricDataResults[i]
		if !slices.Equal(r.Values, want) || len(want) > 0 && !slices.Equal(minutesOf(r.Timestamps), []int64{5, 10}) || r.StatusCode != types.StatusCodeComplete {
			t.Errorf("%s: %v at %v, %s; want %v", *r.Id, r.Values, minutesOf(r.Timestamps), r.StatusCode, want)
		}
	}
	if *out.MetricDataResults[0].Label != "ActiveInstances" {
		t.Errorf("label %s", *out.MetricDataResults[0].Label)
	}
}

// Periods begin at multiples of their length. A period that contains the start counts as a whole.
func TestPeriodsAreAligned(t *testing.T) {
	s := newScene(t, 20)
	out, err := s.client.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: at(start + 7), EndTime: at(start + 12), MetricDataQueries: []types.MetricDataQuery{activeInstances("a", "fleet-1", 300, "SampleCount")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := out.MetricDataResults[0]; !slices.Equal(minutesOf(r.Timestamps), []int64{10, 5}) || !slices.Equal(r.Values, []float64{2, 5}) { // newest first
		t.Errorf("%v at %v", r.Values, minutesOf(r.Timestamps))
	}
	old, err := s.client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String(Namespace), MetricName: aws.String("ActiveInstances"), Dimensions: dims("FleetId", "fleet-1", "Location", "custom-a"),
		StartTime: at(start + 7), EndTime: at(start + 17), Period: aws.Int32(300), Statistics: []types.Statistic{"Sum", "Average", "Minimum", "Maximum", "SampleCount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(old.Datapoints) != 2 {
		t.Fatalf("%d data points", len(old.Datapoints))
	}
	p := old.Datapoints[0]
	if p.Timestamp.Unix()/60 != start+7 || *p.Sum != 50 || *p.Average != 10 || *p.Minimum != 8 || *p.Maximum != 12 || *p.SampleCount != 5 || p.Unit != types.StandardUnitCount {
		t.Errorf("the first data point is %+v", p)
	}
}

// Hourly values are returned for the time before the stored minutes.
func TestHours(t *testing.T) {
	s := newScene(t, 130)
	s.now = start + series.MinutesKept + 1000
	out, err := s.client.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: at(start), EndTime: at(start + 1000), ScanBy: types.ScanByTimestampAscending, MetricDataQueries: []types.MetricDataQuery{activeInstances("a", "fleet-1", 60, "Maximum")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := out.MetricDataResults[0]; !slices.Equal(r.Values, []float64{60, 120, 130}) {
		t.Errorf("%v at %v", r.Values, minutesOf(r.Timestamps))
	}
}

func TestPages(t *testing.T) {
	s := newScene(t, 50)
	for _, order := range []types.ScanBy{types.ScanByTimestampAscending, types.ScanByTimestampDescending} {
		got := map[string][]float64{}
		in := &cloudwatch.GetMetricDataInput{
			StartTime: at(start), EndTime: at(start + 50), ScanBy: order, MaxDatapoints: aws.Int32(7),
			MetricDataQueries: []types.MetricDataQuery{activeInstances("a", "fleet-1", 60, "Sum"), activeInstances("none", "fleet-9", 60, "Sum"), activeInstances("b", "fleet-2", 60, "Sum")},
		}
		pages, partial := cloudwatch.NewGetMetricDataPaginator(s.client, in), false
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, r := range out.MetricDataResults {
				n += len(r.Values)
				got[*r.Id] = append(got[*r.Id], r.Values...)
				partial = partial || r.StatusCode == types.StatusCodePartialData
			}
			if n > 7 {
				t.Fatalf("%d values in a page", n)
			}
		}
		for id, factor := range map[string]float64{"a": 1, "b": 10} {
			if order == types.ScanByTimestampDescending {
				slices.Reverse(got[id])
			}
			for i := range 50 {
				if len(got[id]) != 50 || got[id][i] != float64(i+1)*factor {
					t.Fatalf("%s %s: %v", order, id, got[id])
				}
			}
		}
		if _, there := got["none"]; !there || !partial {
			t.Errorf("an empty result is there: %t, a partial one: %t", there, partial)
		}
	}
}

func TestListMetrics(t *testing.T) {
	s := newScene(t, 3)
	var points []series.Point
	for n := range 600 {
		points = append(points, series.Point{Key: series.MakeKey("QueueDepth", series.Dimension{Name: "QueueName", Value: fmt.Sprintf("q%03d", n)}), Stat: series.Of(1)})
	}
	if err := s.store.Append(start+3, points); err != nil {
		t.Fatal(err)
	}
	pages, names := cloudwatch.NewListMetricsPaginator(s.client, &cloudwatch.ListMetricsInput{Namespace: aws.String(Namespace)}), map[string]int{}
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Metrics {
			names[*m.MetricName]++
		}
	}
	if names["QueueDepth"] != 600 || names["ActiveInstances"] != 2 || names["TimeToMatch"] != 1 {
		t.Errorf("listed %v", names)
	}
	for _, c := range []struct {
		in   cloudwatch.ListMetricsInput
		want int
	}{
		{cloudwatch.ListMetricsInput{MetricName: aws.String("ActiveInstances")}, 2},
		{cloudwatch.ListMetricsInput{Dimensions: []types.DimensionFilter{{Name: aws.String("FleetId")}}}, 2},
		{cloudwatch.ListMetricsInput{Dimensions: []types.DimensionFilter{{Name: aws.String("FleetId"), Value: aws.String("fleet-2")}}}, 1},
		{cloudwatch.ListMetricsInput{Namespace: aws.String("AWS/EC2")}, 0},
	} {
		if out, err := s.client.ListMetrics(t.Context(), &c.in); err != nil || len(out.Metrics) != c.want {
			t.Errorf("%+v: %v, %v", c.in, out, err)
		}
	}
}

// The searches have the form that Grafana's data source for CloudWatch uses.
func TestSearch(t *testing.T) {
	s := newScene(t, 10)
	for expression, want := range map[string]int{
		`SEARCH('{AWS/GameLift,FleetId,Location} MetricName="ActiveInstances"', 'Average', 60)`:                                              2,
		`REMOVE_EMPTY(SEARCH('{"AWS/GameLift","FleetId","Location"} MetricName="ActiveInstances" "FleetId"="fleet-2"', 'Average', 60))`:      1,
		`REMOVE_EMPTY(SEARCH('{"AWS/GameLift","FleetId","Location"} MetricName="ActiveInstances" "FleetId"=("fleet-1" OR "x")', 'Sum', 60))`: 1,
		`REMOVE_EMPTY(SEARCH('Namespace="AWS/GameLift" MetricName="ActiveInstances" "Location"="custom-a"', 'Average', 60))`:                 2,
		`SEARCH('{AWS/GameLift,FleetId} MetricName="ActiveInstances"', 'Average', 60)`:                                                       0,
		`SEARCH('{AWS/EC2,FleetId,Location} MetricName="ActiveInstances"', 'Average', 60)`:                                                   0,
		`SEARCH(' {AWS/GameLift, FleetId, Location} MetricName = "ActiveInstances" AND FleetId = fleet-1 ', 'Maximum', 300)`:                 1,
	} {
		out, err := s.client.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			StartTime: at(start), EndTime: at(start + 10), MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("s"), Expression: &expression, Label: aws.String("${PROP('Dim.FleetId')}/${PROP('Stat')}")}},
		})
		if err != nil || len(out.MetricDataResults) != want {
			t.Errorf("%s: %+v, %v", expression, out, err)
			continue
		}
		for _, r := range out.MetricDataResults {
			if !strings.HasPrefix(*r.Label, "fleet-") || !strings.Contains(*r.Label, "/") || len(r.Values) == 0 {
				t.Errorf("%s: label %s with %d values", expression, *r.Label, len(r.Values))
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	s := newScene(t, 3)
	query := activeInstances("a", "fleet-1", 60, "Average")
	for name, c := range map[string]struct {
		change func(*cloudwatch.GetMetricDataInput)
		code   string
		says   string
	}{
		"percentile": {func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat.Stat = aws.String("p99") }, codeInvalidValue, "The statistic p99 is not stored"},
		"math": {func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{Id: aws.String("m"), Expression: aws.String("a*2")})
		}, codeInvalidValue, "The expression a*2 is metric math"},
		"period": {func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat.Period = aws.Int32(90) }, codeInvalidValue, "90 seconds; want a multiple of 60"},
		"twice":  {func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries = append(in.MetricDataQueries, query) }, codeInvalidValue, "Two queries have the Id a"},
		"time":   {func(in *cloudwatch.GetMetricDataInput) { in.StartTime = in.EndTime }, codeInvalidValue, "StartTime must be less"},
		"token":  {func(in *cloudwatch.GetMetricDataInput) { in.NextToken = aws.String("?") }, "InvalidNextToken", "NextToken"},
		"points": {func(in *cloudwatch.GetMetricDataInput) { in.MaxDatapoints = aws.Int32(200_000) }, codeInvalidValue, "want 1 to 100800"},
	} {
		in := &cloudwatch.GetMetricDataInput{StartTime: at(start), EndTime: at(start + 3), MetricDataQueries: []types.MetricDataQuery{activeInstances("a", "fleet-1", 60, "Average")}}
		c.change(in)
		_, err := s.client.GetMetricData(t.Context(), in)
		refused, ok := errors.AsType[smithy.APIError](err)
		if !ok || refused.ErrorCode() != c.code && refused.ErrorCode() != c.code+"Exception" || !strings.Contains(refused.ErrorMessage(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String(Namespace), MetricName: aws.String("ActiveInstances"), StartTime: at(start - 5000), EndTime: at(start), Period: aws.Int32(60), Statistics: []types.Statistic{"Sum"},
	}); err == nil || !strings.Contains(err.Error(), "exceeds the limit of 1440") {
		t.Errorf("too many data points: %v", err)
	}
	s.role = identity.Client
	if _, err := s.client.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}); err == nil || !strings.Contains(err.Error(), "which may not call ListMetrics") {
		t.Errorf("a key of players: %v", err)
	}
}

// post sends a request as the older clients do.
func (s *scene) post(header http.Header, body string) (status int, answer []byte) {
	s.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.server.URL, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header = header
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer w.Body.Close()
	if answer, err = io.ReadAll(w.Body); err != nil {
		s.Fatal(err)
	}
	return w.StatusCode, answer
}

var (
	jsonHeader  = http.Header{"X-Amz-Target": {targetPrefix + "GetMetricStatistics"}, "Content-Type": {"application/x-amz-json-1.0"}}
	queryHeader = http.Header{"Content-Type": {formType + "; charset=utf-8"}, "Authorization": {"AWS4-HMAC-SHA256 Credential=key/20250101/us-east-1/monitoring/aws4_request, …"}}
)

func TestJSON(t *testing.T) {
	s := newScene(t, 5)
	status, body := s.post(jsonHeader, fmt.Sprintf(`{"Namespace":"AWS/GameLift","MetricName":"TimeToMatch","Dimensions":[{"Name":"ConfigurationName","Value":"duel"}],
		"StartTime":%d,"EndTime":%d,"Period":60,"Statistics":["Average","Maximum"]}`, start*60, (start+2)*60))
	var out struct {
		Label      string
		Datapoints []struct {
			Timestamp        int64
			Average, Maximum float64
			Unit             string
		}
	}
	if err := json.Unmarshal(body, &out); err != nil || status != 200 || len(out.Datapoints) != 2 || out.Datapoints[0].Average != 2.5 || out.Datapoints[0].Maximum != 5.5 || out.Datapoints[1].Timestamp != (start+1)*60 || out.Datapoints[0].Unit != "Seconds" {
		t.Errorf("%d %s %v", status, body, err)
	}
	if status, body := s.post(jsonHeader, `{"Namespace":3}`); status != 400 || !bytes.Contains(body, []byte(`"__type":"com.amazonaws.cloudwatch#InvalidParameterValueException"`)) {
		t.Errorf("%d %s", status, body)
	}
}

func TestQuery(t *testing.T) {
	s := newScene(t, 5)
	form := url.Values{
		"Action": {"GetMetricStatistics"}, "Version": {"2010-08-01"}, "Namespace": {Namespace}, "MetricName": {"TimeToMatch"}, "Period": {"60"},
		"Dimensions.member.1.Name": {"ConfigurationName"}, "Dimensions.member.1.Value": {"duel"}, "Statistics.member.1": {"Average"}, "Statistics.member.2": {"SampleCount"},
		"StartTime": {timeOf(start).Format(time.RFC3339)}, "EndTime": {timeOf(start + 2).Format(time.RFC3339)},
	}
	status, body := s.post(queryHeader, form.Encode())
	var out struct {
		XMLName    xml.Name `xml:"http://monitoring.amazonaws.com/doc/2010-08-01/ GetMetricStatisticsResponse"`
		Label      string   `xml:"GetMetricStatisticsResult>Label"`
		Datapoints []struct {
			Timestamp            time.Time
			Average, SampleCount float64
		} `xml:"GetMetricStatisticsResult>Datapoints>member"`
		RequestID string `xml:"ResponseMetadata>RequestId"`
	}
	if err := xml.Unmarshal(body, &out); err != nil || status != 200 || len(out.Datapoints) != 2 || out.Datapoints[0].Average != 2.5 || out.Datapoints[1].SampleCount != 4 ||
		!out.Datapoints[1].Timestamp.Equal(timeOf(start+1)) || out.RequestID == "" {
		t.Errorf("%d %s %v", status, body, err)
	}
	if status, body := s.post(queryHeader, "member.1=ListMetrics"); status != 400 || !bytes.Contains(body, []byte("<Code>SerializationException</Code>")) {
		t.Errorf("a list: %d %s", status, body)
	}
	form.Set("Action", "PutMetricData")
	if status, body := s.post(queryHeader, form.Encode()); status != 400 || !bytes.Contains(body, []byte("<Code>InvalidAction</Code>")) {
		t.Errorf("%d %s", status, body)
	}
}

// FuzzInput reads any bodies in all protocols.
func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"MetricDataQueries":[{"Id":"a","MetricStat":{"Metric":{"Namespace":"x"},"Period":60}}],"StartTime":1}`))
	f.Add([]byte("Action=ListMetrics&Dimensions.member.1.Name=a&Dimensions.member.2.Name=b&StartTime=2025-01-01"))
	f.Add([]byte("member.1=a"))
	f.Add([]byte("\xa1\x69StartTime\xc1\x01"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		for _, p := range []protocol{jsonProtocol{}, cborProtocol{}, queryProtocol{}} {
			if o, err := p.read(body); err == nil {
				r := newReader(o)
				readSpan(r)
				dimensionsOf(r, true)
				for _, x := range r.structures("MetricDataQueries", 5) {
					dimensionsOf(x.structure("MetricStat").structure("Metric"), false)
					x.number("Period", 1)
					x.yes("ReturnData", true)
				}
				r.list("Statistics", 5)
			}
		}
		_, _ = parseSearch(string(body))
		_, _ = readPlace(string(body))
	})
}
