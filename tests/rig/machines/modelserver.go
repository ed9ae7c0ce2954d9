package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
)

// modelServer answers at a pod's address as vLLM does.
type modelServer struct {
	fleet   *fleet
	pool    *pool
	engine  *engine
	pod     string
	started time.Time
	http    *http.Server
}

func openModelServer(f *fleet, p *pool, pod *core.Pod, ip string) (*modelServer, error) {
	port := 8000
	if ports := pod.Spec.Containers[0].Ports; len(ports) > 0 {
		port = int(ports[0].ContainerPort)
	}
	listener, err := listenLoopback(net.JoinHostPort(ip, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	s := &modelServer{fleet: f, pool: p, pod: pod.Name, started: time.Now()}
	s.engine = p.join(pod.Name, f.now())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","owned_by":"vllm"}]}`+"\n", p.conf.Model)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(listener)
	return s, nil
}

func (s *modelServer) close(now float64) {
	s.pool.leave(s.engine, now)
	s.http.Close()
}

func (s *modelServer) metrics(w http.ResponseWriter, r *http.Request) {
	k := s.fleet.cloud
	k.mu.Lock()
	wrong := k.faults.scrape(s.pool.conf.Name, s.pod, k.clock.seconds(time.Now()))
	k.mu.Unlock()
	switch wrong {
	case "hang":
		<-r.Context().Done()
		return
	case "http500":
		http.Error(w, "Internal Server Error", 500)
		return
	}
	text := s.exposition(s.fleet.now(), wrong)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	io.WriteString(w, text)
}
