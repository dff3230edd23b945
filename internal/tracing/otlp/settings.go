package otlp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/tracing"
)

// plan is the export that the settings and the standard variables request.
type plan struct {
	traces, metrics, logs string // URLs; empty: not exported
	sampling              tracing.Sampling
}

// planOf reads the variables that determine what is exported, where to, and which calls are traced. The exporters read the other variables themselves,
// after check has found no fault in them.
func planOf(endpoint string, getenv func(string) string) (p plan, err error) {
	if disabled, err := flag("OTEL_SDK_DISABLED", getenv); disabled || err != nil {
		return plan{}, err
	}
	if p.traces, err = urlOf("TRACES", endpoint, getenv); err != nil {
		return plan{}, err
	}
	if p.metrics, err = urlOf("METRICS", endpoint, getenv); err != nil {
		return plan{}, err
	}
	if p.traces != "" {
		if p.sampling, err = samplingOf(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG")); err != nil {
			return plan{}, err
		}
	}
	return p, p.check(getenv)
}

// urlOf returns the URL for a signal.
func urlOf(signal, endpoint string, getenv func(string) string) (string, error) {
	own := "OTEL_EXPORTER_OTLP_" + signal + "_"
	at, of := endpoint, "otlp-endpoint"
	if at == "" {
		at, of = getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	if at != "" {
		at = strings.TrimRight(at, "/") + "/v1/" + strings.ToLower(signal)
	}
	if endpoint == "" && getenv(own+"ENDPOINT") != "" {
		at, of = getenv(own+"ENDPOINT"), own+"ENDPOINT"
	}
	if at == "" {
		return "", nil
	}
	switch name := "OTEL_" + signal + "_EXPORTER"; getenv(name) {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("%s: %.40q, want otlp or none", name, getenv(name))
	}
	for _, name := range []string{own + "PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if value := getenv(name); value != "" {
			if value != "http/protobuf" {
				return "", fmt.Errorf("%s: %.40q, want http/protobuf, the one protocol that Muster exports by", name, value)
			}
			break
		}
	}
	if err := tracing.CheckEndpoint(at); err != nil {
		return "", fmt.Errorf("%s: %w", of, err)
	}
	return at, nil
}

// samplers are the values of OTEL_TRACES_SAMPLER; a negative share stands for the sampler's argument.
var samplers = map[string]tracing.Sampling{
	"always_on":                {Share: 1},
	"always_off":               {Share: 0},
	"traceidratio":             {Share: -1},
	"parentbased_always_on":    {Share: 1, Parents: true},
	"parentbased_always_off":   {Share: 0, Parents: true},
	"parentbased_traceidratio": {Share: -1, Parents: true},
}

func samplingOf(name, argument string) (tracing.Sampling, error) {
	s, ok := samplers[cmp.Or(name, "parentbased_always_on")]
	if !ok {
		var names []string
		for known := range samplers {
			names = append(names, known)
		}
		slices.Sort(names)
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER: %.40q, want one of %s", name, strings.Join(names, ", "))
	}
	if s.Share >= 0 {
		return s, nil
	}
	share, err := strconv.ParseFloat(cmp.Or(argument, "1"), 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %.40q, want a number from 0 to 1", argument)
	}
	s.Share = share
	return s, nil
}
