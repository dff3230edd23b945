package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// CheckEndpoint checks the URL of a collector. Its errors do not repeat a URL that may contain a secret.
func CheckEndpoint(text string) error {
	const want = "want a URL such as http://127.0.0.1:4318"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("not a URL; %s", want)
	case u.User != nil:
		return errors.New("the URL contains a user or password; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	case strings.ContainsAny(text, "@?#"): // also if the parser finds no user, query or fragment because the scheme is missing
		return fmt.Errorf("the URL has a user, a query or a fragment; %s", want)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%.100q, %s", text, want)
	}
	return nil
}
