package tracing

import (
	"errors"
	"fmt"
	"net/url"
)

// CheckEndpoint requires a URL of a collector. Its errors do not repeat a URL that may have a secret.
func CheckEndpoint(text string) error {
	const want = "want a URL such as http://127.0.0.1:4318"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("not a URL; %s", want)
	case u.User != nil:
		return errors.New("the URL contains a user or password; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.100q, %s", text, want)
	}
	return nil
}
