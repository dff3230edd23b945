package export

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

const (
	bodyMax    = 1 << 20   // bytes of a body: any entry is shorter
	requestMax = 512 << 10 // bytes of the bodies in a request; the rest is sent in another one, because collectors limit what they accept
)

// collector sends entries to an OpenTelemetry collector, which acknowledges them.
type collector struct{ logs *otlp.Logs }

func (c *collector) send(ctx context.Context, docs []audit.Document) (rejected int, err error) {
	var records []otlp.Record
	bytes := 0
	for i := range docs {
		r := recordOf(&docs[i])
		records = append(records, r)
		if bytes += len(r.Body); bytes < requestMax && i < len(docs)-1 {
			continue
		}
		n, err := c.logs.Send(ctx, records)
		if err != nil {
			return 0, err
		}
		rejected += n
		records, bytes = records[:0], 0
	}
	return rejected, nil
}

func recordOf(d *audit.Document) otlp.Record {
	r := otlp.Record{At: d.At, Warning: strings.HasPrefix(d.Outcome, "refused"), Event: "muster.audit", Body: string(line(*d, bodyMax))}
	r.Attributes = append(r.Attributes, attribute.Int64("muster.audit.no", int64(d.No)))
	for _, x := range []attribute.KeyValue{
		attribute.String("muster.audit.outcome", d.Outcome), attribute.String("muster.audit.operation", d.What), attribute.String("muster.audit.door", d.Door),
		attribute.String("muster.audit.kind", d.Kind), attribute.String("muster.audit.id", d.ID), attribute.String("user.id", d.Who),
		attribute.String("client.address", d.Address), attribute.String("user_agent.original", d.Agent),
	} {
		if x.Value.AsString() != "" {
			r.Attributes = append(r.Attributes, x)
		}
	}
	return r
}

func (c *collector) confirm(context.Context) error { return nil }

func (c *collector) drop() {}
