package console

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// Bounds of exports.
const (
	exportRowsMax = 100_000
	exportsAtOnce = 2                // at this node; further ones are refused
	exportStep    = 1000             // rows read at a time, between which other requests can run
	exportTime    = 5 * time.Minute  // for a whole export
	exportWrite   = 10 * time.Second // for a client to take the rows read at a time
)

// exporter writes rows in one format.
type exporter interface {
	begin(list string, columns []string) error
	row(values []value) error
	// end writes where the export continues; empty: it is complete.
	end(next string) error
}

// formats maps names of formats to their exporters.
var formats = map[string]func(*bufio.Writer) exporter{
	"csv":  func(w *bufio.Writer) exporter { return &csvExporter{to: csv.NewWriter(w)} },
	"json": func(w *bufio.Writer) exporter { return &jsonExporter{to: w} },
}

var mediaTypes = map[string]string{"csv": "text/csv; charset=utf-8; header=present", "json": "application/json"}

// export streams the rows of a page and its next pages. It is not a snapshot: each row has its state when it was read.
func (l *list[R]) export(d *Door, w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	query := r.URL.Query()
	format := query.Get(formatParameter)
	if formats[format] == nil {
		d.refuse(w, r, domain.Refuse(domain.Invalid, "format is %.20q; want csv or json.", format), by)
		return
	}
	columns, err := l.chosen(query)
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	select {
	case d.exports <- struct{}{}:
		defer func() { <-d.exports }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, strconv.Itoa(exportsAtOnce)+" lists are exported by this node at the moment. Try again in some seconds.", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exportTime)
	defer cancel()
	r = r.WithContext(ctx)
	query = without(query, formatParameter, doneParameter)
	rows, next, err := l.rows(d, r, query, exportStep)
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	w.Header().Set("Content-Type", mediaTypes[format])
	w.Header().Set("Content-Disposition", `attachment; filename="`+l.name+"."+format+`"`)
	out := &output[R]{columns: columns, buffer: bufio.NewWriter(w), stream: http.NewResponseController(w)}
	out.to = formats[format](out.buffer)
	err = out.begin(l.name)
	for err == nil {
		if err = out.write(rows); err != nil {
			break
		}
		if next == nil {
			err = out.end("")
			break
		}
		query = with(query, next)
		if out.rows+exportStep > exportRowsMax {
			err = out.end(r.URL.EscapedPath() + "?" + with(query, url.Values{formatParameter: {format}}).Encode())
			break
		}
		rows, next, err = l.rows(d, r, query, exportStep)
	}
	d.log.Info("a list of the console was exported", "list", l.name, "format", format, "rows", out.rows, "principal", by.ID, "address", d.config.Proxies.Of(r), "error", err)
	if err != nil {
		panic(http.ErrAbortHandler) // the client must not take a partial export for a complete one
	}
}

// output writes the rows of an export to a client.
type output[R any] struct {
	columns []*column[R]
	to      exporter
	buffer  *bufio.Writer
	stream  *http.ResponseController
	rows    int // written
}

func (x *output[R]) begin(name string) error {
	var columns []string
	for _, c := range x.columns {
		columns = append(columns, c.name)
	}
	return x.to.begin(name, columns)
}

// write passes rows to the client, within a time limit.
func (x *output[R]) write(rows []R) error {
	_ = x.stream.SetWriteDeadline(time.Now().Add(exportWrite)) // only a recorder in a test cannot set it
	values := make([]value, len(x.columns))
	for i := range rows {
		for c, column := range x.columns {
			values[c] = column.value(&rows[i])
		}
		if err := x.to.row(values); err != nil {
			return err
		}
	}
	x.rows += len(rows)
	return x.buffer.Flush()
}

func (x *output[R]) end(next string) error {
	if err := x.to.end(next); err != nil {
		return err
	}
	return x.buffer.Flush()
}

type csvExporter struct {
	to    *csv.Writer
	cells []string
}

func (x *csvExporter) begin(_ string, columns []string) error {
	x.cells = make([]string, len(columns))
	return x.to.Write(columns)
}

func (x *csvExporter) row(values []value) error {
	for i := range values {
		x.cells[i] = values[i].cell()
	}
	return x.to.Write(x.cells)
}

// end writes a last row that says that there is more, because CSV has no other place for it.
func (x *csvExporter) end(next string) error {
	if next != "" {
		clear(x.cells)
		x.cells[0] = "The export ends here, at its limit of " + strconv.Itoa(exportRowsMax) + " rows. It goes on at " + next
		return x.to.Write(x.cells)
	}
	return nil
}

// jsonExporter writes an object that is incomplete until its end.
type jsonExporter struct {
	to      *bufio.Writer
	columns [][]byte
	rows    int
}

func (x *jsonExporter) begin(list string, columns []string) error {
	for _, name := range columns {
		x.columns = append(x.columns, mustJSON(name))
	}
	_, err := x.to.WriteString(`{"list":` + string(mustJSON(list)) + `,"rows":[`)
	return err
}

func (x *jsonExporter) row(values []value) error {
	separator := byte(',')
	if x.rows == 0 {
		separator = ' '
	}
	x.rows++
	_, _ = x.to.Write([]byte{separator, '\n'}) // a bufio.Writer keeps its error until the last call
	for i := range values {
		separator = ','
		if i == 0 {
			separator = '{'
		}
		_ = x.to.WriteByte(separator)
		_, _ = x.to.Write(x.columns[i])
		_ = x.to.WriteByte(':')
		data, err := json.Marshal(values[i].data())
		if err != nil {
			return err
		}
		_, _ = x.to.Write(data)
	}
	return x.to.WriteByte('}')
}

func (x *jsonExporter) end(next string) error {
	var place any // null: the export is complete
	if next != "" {
		place = next
	}
	_, err := x.to.WriteString("\n" + `],"next":` + string(mustJSON(place)) + "}\n")
	return err
}
