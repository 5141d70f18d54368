package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// requestTime bounds one request of the tour.
const requestTime = 30 * time.Second

// step sends the n-th request and shows it.
func (st *stage) step(ctx context.Context, p page, n int, s *step) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	x := &exchange{id: fmt.Sprintf("tour-%d", n), sent: s.body}
	p.title(n, s)
	p.request(s, x)
	start := time.Now()
	resp, err := st.send(ctx, s, x)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end, or failed
	live := s.stream && resp.StatusCode == http.StatusOK
	if live {
		p.answer(x)
		err = x.readEvents(resp.Body, start, p.event)
	} else {
		var b []byte
		b, err = io.ReadAll(resp.Body)
		x.body = string(b)
	}
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if err := st.lookUp(ctx, x); err != nil {
		return err
	}
	p.received(st, x)
	if !live {
		p.answer(x)
	}
	return s.check(x)
}

// send sends the request and notes the head of the answer.
func (st *stage) send(ctx context.Context, s *step, x *exchange) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+st.data+s.path, strings.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", x.id)
	resp, err := st.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	return resp, nil
}

// readEvents reads a stream and calls show with each event as it comes.
func (x *exchange) readEvents(body io.Reader, start time.Time, show func(*event)) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		x.events = append(x.events, event{time.Since(start), data})
		show(&x.events[len(x.events)-1])
	}
	return lines.Err()
}

// lookUp asks the engines which of them received the request, and what.
func (st *stage) lookUp(ctx context.Context, x *exchange) error {
	for i, url := range st.engines {
		_, body, err := st.get(ctx, url+"/sim/requests")
		if err != nil {
			return err
		}
		var list struct {
			Requests []struct {
				Headers []struct{ Name, Value string }
				Body    string
			}
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("cannot read what %s received: %w", url, err)
		}
		for _, r := range list.Requests {
			for _, f := range r.Headers {
				if !strings.EqualFold(f.Name, "X-Request-Id") || f.Value != x.id {
					continue
				}
				if x.engine != 0 {
					return errors.New("the engines received the request more than once")
				}
				x.engine, x.received = i+1, r.Body
			}
		}
	}
	return nil
}

// counters are the metrics that the steps must have left behind, in the order
// in which they are shown.
var counters = []string{
	`sluice_contract_injected_total{param="temperature"} 2`,
	`sluice_contract_rejected_total{param="temperature"} 1`,
	`sluice_contract_rejected_total{param="top_p"} 1`,
}

// accounts shows what the operator sees of the requests: metrics and log.
func (st *stage) accounts(ctx context.Context, p page) error {
	_, metrics, err := st.get(ctx, "http://"+st.admin+"/metrics")
	if err != nil {
		return err
	}
	p.head("What the operator sees: metrics, and a log line for each request\n(here of step 3)")
	for _, want := range counters {
		if !strings.Contains(string(metrics), want+"\n") {
			return fmt.Errorf("the metrics lack %s", want)
		}
		p.indented(want)
	}
	p.text("\n")
	// The router writes its log out every 100 ms.
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for {
		if line := st.accessLine("tour-3"); line != "" {
			p.indented(line)
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the access log has no line for the request of step 3")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
