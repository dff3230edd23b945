//go:build !quick

package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/authorities"
	"github.com/musterhq/muster/internal/tracing"
)

const (
	logsTimeout = 10 * time.Second // for a request, unless a variable says otherwise
	answerMax   = 64 << 10         // bytes of an answer that are read
	retryMax    = 5 * time.Minute  // the longest pause that a collector can request
)

// Logs sends records to a collector and reports which of them the collector accepted. The libraries' exporter returns no error for rejected records.
// Its methods must not be called concurrently.
type Logs struct {
	url, where string
	client     *http.Client
	header     http.Header
	gzip       bool
	resource   *resourcepb.Resource
}

// OpenLogs reads the address and options of the collector. It fails if nothing names a collector, or if a variable disables the export of logs.
func OpenLogs(ctx context.Context, c Config) (*Logs, error) {
	if disabled, err := flag("OTEL_SDK_DISABLED", c.Getenv); disabled || err != nil {
		return nil, cmp.Or(err, errors.New("OTEL_SDK_DISABLED: true, want it unset, so that logs are exported"))
	}
	at, err := urlOf("LOGS", c.Endpoint, c.Getenv)
	if err != nil {
		return nil, err
	}
	if at == "" {
		return nil, errors.New("no collector is named for logs: want otlp-endpoint or OTEL_EXPORTER_OTLP_LOGS_ENDPOINT, and OTEL_LOGS_EXPORTER unset")
	}
	if err := (plan{logs: at}).check(c.Getenv); err != nil {
		return nil, err
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("the URL of the collector is malformed") // CheckEndpoint has parsed it
	}
	of := func(name string) string {
		return strings.TrimSpace(cmp.Or(c.Getenv("OTEL_EXPORTER_OTLP_LOGS_"+name), c.Getenv("OTEL_EXPORTER_OTLP_"+name)))
	}
	security, err := securityOf(of)
	if err != nil {
		return nil, err
	}
	timeout := logsTimeout
	if ms, err := strconv.Atoi(of("TIMEOUT")); err == nil {
		timeout = time.Duration(ms) * time.Millisecond
	}
	x := &Logs{
		url: at, where: u.Scheme + "://" + u.Host, header: headersOf(of("HEADERS")), gzip: of("COMPRESSION") == "gzip",
		client: &http.Client{
			Timeout:       timeout,
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: security, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the headers are only for the collector
		},
	}
	r, err := resourceOf(ctx, c)
	if err != nil {
		return nil, err
	}
	x.resource = &resourcepb.Resource{Attributes: attributesOf(r.Attributes())}
	return x, nil
}

func headersOf(text string) http.Header {
	h := http.Header{}
	for _, header := range strings.Split(text, ",") {
		if key, value, found := strings.Cut(header, "="); found {
			decoded, _ := url.PathUnescape(value) // check has decoded it
			h.Set(strings.TrimSpace(key), strings.TrimSpace(decoded))
		}
	}
	return h
}

// securityOf reads the certificates, which check has verified before.
func securityOf(of func(string) string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := of("CERTIFICATE"); file != "" {
		var err error
		if c.RootCAs, err = authorities.Read(file); err != nil {
			return nil, err
		}
	}
	if file := of("CLIENT_CERTIFICATE"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, of("CLIENT_KEY"))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func attributesOf(all []attribute.KeyValue) (some []*common.KeyValue) {
	for _, x := range all {
		value := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: x.Value.String()}}
		if x.Value.Type() == attribute.INT64 {
			value = &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: x.Value.AsInt64()}}
		}
		some = append(some, &common.KeyValue{Key: string(x.Key), Value: value})
	}
	return some
}

// Where returns the collector's address without the path, which may be secret.
func (l *Logs) Where() string { return l.where }

// Send sends records in their order. If the error is nil, the collector accepted all of them except those that it rejected permanently.
func (l *Logs) Send(ctx context.Context, records []Record) (rejected int, err error) {
	scope := &logs.ScopeLogs{Scope: &common.InstrumentationScope{Name: tracing.Scope}}
	now := uint64(time.Now().UnixNano())
	for _, r := range records {
		x := &logs.LogRecord{
			TimeUnixNano: uint64(r.At.UnixNano()), ObservedTimeUnixNano: now, EventName: r.Event,
			SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
			Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: r.Body}}, Attributes: attributesOf(r.Attributes),
		}
		if r.Warning {
			x.SeverityNumber, x.SeverityText = logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
		}
		scope.LogRecords = append(scope.LogRecords, x)
	}
	body, err := proto.Marshal(&collectorlogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{Resource: l.resource, ScopeLogs: []*logs.ScopeLogs{scope}}}})
	if err != nil {
		return 0, err
	}
	return l.post(ctx, body)
}

func (l *Logs) post(ctx context.Context, body []byte) (rejected int, err error) {
	header := l.header.Clone()
	header.Set("Content-Type", "application/x-protobuf")
	if l.gzip {
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		_, _ = w.Write(body) // writing to memory never fails
		_ = w.Close()
		body = small.Bytes()
		header.Set("Content-Encoding", "gzip")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the URL of the collector is malformed")
	}
	r.Header = header
	answer, err := l.client.Do(r)
	if err != nil {
		if x, ok := errors.AsType[*url.Error](err); ok { // without the URL
			err = x.Err
		}
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return 0, &Busy{Status: http.StatusText(answer.StatusCode) + " (" + strconv.Itoa(answer.StatusCode) + ")", After: min(time.Duration(max(0, min(seconds, 3600)))*time.Second, retryMax)}
	}
	said, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return 0, fmt.Errorf("the answer of the collector: %w", err)
	}
	var x collectorlogs.ExportLogsServiceResponse
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/x-protobuf") || proto.Unmarshal(said, &x) != nil {
		return 0, nil // it accepted them
	}
	return int(x.GetPartialSuccess().GetRejectedLogRecords()), nil
}
