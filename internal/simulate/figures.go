package simulate

import "html/template"

// Figure is a line of the table of figures: a label, which is indented if it is about the one above it, and the figure of each report.
type Figure struct {
	Label string
	Cells []string
}

// Figures returns the figures of reports about the same arrivals, without their names.
func Figures(reports ...*Report) []Figure { return lines(reports)[1:] }

// Plot is a chart as a page shows it. The picture and the keys have a class for each report, r0 and r1, and dashed; the page has their colors.
type Plot struct {
	Title, Unit string
	Picture     template.HTML
	Keys        []Key
}

// Key says what a color stands for.
type Key struct{ Name, Class string }

// Plots returns the charts of reports about the same arrivals.
func Plots(reports ...*Report) (all []Plot) {
	for _, c := range charts(reports) {
		all = append(all, c.plot())
	}
	return all
}

func (c *chart) plot() Plot {
	p := Plot{Title: c.title, Unit: c.unit, Picture: c.svg()}
	for i := range c.series {
		p.Keys = append(p.Keys, Key{c.series[i].name, c.series[i].class()})
	}
	return p
}

// Bars returns a chart of one value for each of some places.
func Bars(title, unit, name string, places []string, values []float64) Plot {
	c := chart{title: title, unit: unit, places: places, bars: true, series: []series{{name: name, values: values}}}
	return c.plot()
}
