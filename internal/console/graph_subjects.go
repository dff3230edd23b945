package console

import (
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
)

func (d *Door) fleetMetrics(r *http.Request) (*subject, error) {
	id, location := r.PathValue("id"), r.URL.Query().Get("location")
	path := Prefix + "/fleets/" + url.PathEscape(id) + "/metrics"
	s := &subject{Section: "fleets", path: path, command: "aws cloudwatch list-metrics --namespace AWS/GameLift --dimensions Name=FleetId,Value=" + shellWord(id)}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		f, ok := v.Fleet(id)
		if !ok {
			return domain.Refuse(domain.NotFound, "There is no fleet %.100q.", id)
		}
		if _, ok := f.HasLocation(location); !ok && location != "" {
			return domain.Refuse(domain.NotFound, "Fleet %s has no location %.100q.", id, location)
		}
		s.Title, s.back = "Metrics of "+f.Name, &link{"Fleet " + f.Name, Prefix + "/fleets/" + id}
		s.choice = &choice{Name: "location", Text: "Location", Value: location, Empty: "all together"}
		for _, l := range f.Locations {
			s.choice.Values = append(s.choice.Values, l.Name)
		}
		s.graphs = fleetGraphs(id, location, f.Managed != nil)
		return nil
	})
	return s, err
}

func (d *Door) queueMetrics(r *http.Request) (*subject, error) {
	name := r.PathValue("name")
	s := &subject{Section: "queues", path: Prefix + "/queues/" + url.PathEscape(name) + "/metrics", Title: "Metrics of " + name, back: &link{"Queue " + name, Prefix + "/" + objectPath("queue", name)},
		command: "aws cloudwatch list-metrics --namespace AWS/GameLift --dimensions Name=QueueName,Value=" + shellWord(name)}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		if _, ok := v.Queue(name); !ok {
			return domain.Refuse(domain.NotFound, "There is no queue %.128q.", name)
		}
		return nil
	})
	if err == nil {
		s.graphs = queueGraphs(name, d.config.Series)
	}
	return s, err
}

func (d *Door) configurationMetrics(r *http.Request) (*subject, error) {
	name := r.PathValue("name")
	s := &subject{Section: "matchmaking", path: Prefix + "/matchmaking/" + url.PathEscape(name) + "/metrics", Title: "Metrics of " + name, back: &link{"Configuration " + name, Prefix + "/" + objectPath("configuration", name)},
		command: "aws cloudwatch list-metrics --namespace AWS/GameLift --dimensions Name=ConfigurationName,Value=" + shellWord(name)}
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		if _, ok := v.Configuration(name); !ok {
			return domain.Refuse(domain.NotFound, "There is no matchmaking configuration %.128q.", name)
		}
		return nil
	})
	if err == nil {
		s.graphs = configurationGraphs(name, d.config.Series)
	}
	return s, err
}
