package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/musterhq/muster/internal/authorities"
)

// The libraries ignore a variable that they cannot parse, and write its text, which may be a credential, to standard error. Some numbers stop
// them or make them loop forever. So every variable that they read is checked first.

// Bounds of numbers.
const (
	millisMax    = int(24 * time.Hour / time.Millisecond)
	anyNumberMax = math.MaxInt32
)

// check refuses variables that the exporters of these signals would not understand.
func (p plan) check(getenv func(string) string) error {
	if p.traces == "" && p.metrics == "" && p.logs == "" {
		return nil
	}
	exporters := []string{"OTEL_EXPORTER_OTLP_"}
	var errs []error
	number := func(name string, least, most int) {
		if text := strings.TrimSpace(getenv(name)); text != "" {
			if n, err := strconv.Atoi(text); err != nil || n < least || n > most {
				errs = append(errs, fmt.Errorf("%s: %.40q, want a whole number from %d to %d", name, text, least, most))
			}
		}
	}
	if p.traces != "" {
		exporters = append(exporters, "OTEL_EXPORTER_OTLP_TRACES_")
		number("OTEL_BSP_SCHEDULE_DELAY", 1, millisMax)
		number("OTEL_BSP_EXPORT_TIMEOUT", 1, millisMax)
		number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, spansMax)
		for _, name := range []string{"ATTRIBUTE_VALUE_LENGTH", "ATTRIBUTE_COUNT", "SPAN_ATTRIBUTE_VALUE_LENGTH", "SPAN_ATTRIBUTE_COUNT",
			"SPAN_EVENT_COUNT", "SPAN_LINK_COUNT", "EVENT_ATTRIBUTE_COUNT", "LINK_ATTRIBUTE_COUNT"} {
			number("OTEL_"+name+"_LIMIT", -1, anyNumberMax)
		}
	}
	if p.metrics != "" {
		exporters = append(exporters, "OTEL_EXPORTER_OTLP_METRICS_")
		number("OTEL_METRIC_EXPORT_INTERVAL", 1, millisMax)
		number("OTEL_METRIC_EXPORT_TIMEOUT", 1, millisMax)
	}
	if p.logs != "" {
		exporters = append(exporters, "OTEL_EXPORTER_OTLP_LOGS_")
	}
	for _, of := range exporters {
		number(of+"TIMEOUT", 1, millisMax)
		_, err := flag(of+"INSECURE", getenv)
		errs = append(errs, err, checkHeaders(of+"HEADERS", getenv), checkCompression(of+"COMPRESSION", getenv), checkFiles(of, getenv))
	}
	return errors.Join(errs...)
}

func flag(name string, getenv func(string) string) (bool, error) {
	switch text := strings.TrimSpace(getenv(name)); strings.ToLower(text) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %.40q, want true or false", name, text)
	}
}

func checkCompression(name string, getenv func(string) string) error {
	switch text := strings.TrimSpace(getenv(name)); text {
	case "", "gzip", "none":
		return nil
	default:
		return fmt.Errorf("%s: %.40q, want gzip or none", name, text)
	}
}

// checkHeaders checks the headers of an exporter. Its errors repeat no header, which may be a credential.
func checkHeaders(name string, getenv func(string) string) error {
	text := strings.TrimSpace(getenv(name))
	if text == "" {
		return nil
	}
	for i, header := range strings.Split(text, ",") {
		key, value, found := strings.Cut(header, "=")
		decoded, err := url.PathUnescape(value)
		if !found || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(key)) || !httpguts.ValidHeaderFieldValue(strings.TrimSpace(decoded)) {
			return fmt.Errorf("%s: header %d is malformed, want name=value, with commas between headers and the value URL-encoded", name, i+1)
		}
	}
	return nil
}

// checkFiles checks the certificate files of an exporter.
func checkFiles(of string, getenv func(string) string) error {
	if file := strings.TrimSpace(getenv(of + "CERTIFICATE")); file != "" {
		if _, err := authorities.Read(file); err != nil {
			return fmt.Errorf("%sCERTIFICATE: %w, want a file of certificates", of, err)
		}
	}
	certificate, key := strings.TrimSpace(getenv(of+"CLIENT_CERTIFICATE")), strings.TrimSpace(getenv(of+"CLIENT_KEY"))
	if certificate == "" && key == "" {
		return nil
	}
	if certificate == "" || key == "" {
		return fmt.Errorf("%sCLIENT_CERTIFICATE: %q, and %sCLIENT_KEY: %q, want a file for both or neither", of, certificate, of, key)
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return fmt.Errorf("%sCLIENT_CERTIFICATE: %q, and %sCLIENT_KEY: %q, want a certificate and its key: %w", of, certificate, of, key, err)
	}
	return nil
}
