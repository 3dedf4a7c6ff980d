// Wave propagation (Pereira and Berlin, Wave Propagation and Deep Propagation for Pointer Analysis, §3): in rounds,
// cycles of copies are collapsed, what is new flows once through the acyclic rest in topological order, and then the
// constraints that need points-to sets (loads, stores, steps, calls) see what is new and add copies.
#include "pointsto/solver.h"

#include <numeric>
#include <utility>

using namespace llvm;

namespace catena {

Solver::Solver(Memory &memory) : memory(memory) {
    newNode();
    memory.onLocation = [this](Location location) { fresh.push_back(location); };
}

NodeId Solver::newNode() {
    auto id = static_cast<NodeId>(nodes.size());
    nodes.emplace_back();
    parents.push_back(id);
    return id;
}

NodeId Solver::contentOf(Location location) {
    if (contents.size() <= location) contents.resize(std::max<size_t>(location + 1, contents.size() * 2), nothing);
    if (contents[location] == nothing) contents[location] = newNode();
    return contents[location];
}

NodeId Solver::find(NodeId node) {
    while (parents[node] != node) node = parents[node] = parents[parents[node]];
    return node;
}

void Solver::address(NodeId node, Location location) {
    Node &at = nodes[find(node)];
    if (at.points.insert(location)) at.fresh.insert(location);
}

bool Solver::addEdge(NodeId from, NodeId to) {
    from = find(from), to = find(to);
    if (from == to || from == nothing || to == nothing) return false;
    if (!edges.insert(uint64_t{from} << 32 | to).second) return false;
    nodes[from].copies.push_back(to);
    // What it carries waits until cycles are collapsed: most new copies turn out to lie in one.
    if (!nodes[from].points.empty()) pending.push_back({from, to});
    return true;
}

void Solver::copy(NodeId from, NodeId to) { addEdge(from, to); }

// A constraint on a node must see what the node already points to; it is then part of `unseen` again, and the other
// constraints of the node find nothing new in it.
void Solver::load(NodeId pointer, NodeId to, uint64_t size) {
    if (pointer == nothing || to == nothing) return;
    if (!memory.hasFields() || size <= 8) {
        addEdge(loaded(pointer), to);
        if (tablesApart) addEdge(loadedOfTables(pointer), to);
        return;
    }
    pointer = find(pointer);
    nodes[pointer].loads.push_back({to, static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX))});
    nodes[pointer].unseen.add(nodes[pointer].points);
}

/// Return one of a node's hubs, made at need.
NodeId Solver::hubOf(NodeId pointer, NodeId Node::*hub) {
    if (pointer == nothing) return nothing;
    pointer = find(pointer);
    if (nodes[pointer].*hub == nothing) {
        NodeId made = newNode();
        nodes[pointer].*hub = made;
        nodes[pointer].unseen.add(nodes[pointer].points);
    }
    return nodes[pointer].*hub;
}

NodeId Solver::loaded(NodeId pointer) { return hubOf(pointer, &Node::loaded); }

NodeId Solver::loadedOfTables(NodeId pointer) { return hubOf(pointer, &Node::loadedOfTables); }

void Solver::store(NodeId from, NodeId pointer, uint64_t size) {
    if (pointer == nothing || from == nothing) return;
    pointer = find(pointer);
    if (!memory.hasFields() || size <= 8) {
        addEdge(from, hubOf(pointer, &Node::stored));
        return;
    }
    nodes[pointer].stores.push_back({from, static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX))});
    nodes[pointer].unseen.add(nodes[pointer].points);
}

void Solver::step(NodeId from, NodeId to, Distance distance) {
    if (from == nothing || to == nothing) return;
    if (!memory.hasFields() || distance.isNone()) {
        copy(from, to);
        return;
    }
    Node &node = nodes[find(from)];
    node.steps.push_back({to, distance});
    node.unseen.add(node.points);
}

void Solver::copyMemory(NodeId source, NodeId target, uint64_t size) {
    if (source == nothing || target == nothing) return;
    if (!memory.hasFields()) {
        NodeId middle = newNode();
        load(source, middle, 0);
        store(middle, target, 0);
        return;
    }
    auto number = static_cast<unsigned>(moves.size());
    moves.push_back({source, target, size ? size : UINT64_MAX});
    for (NodeId end : {find(source), find(target)}) {
        nodes[end].moves.push_back(number);
        nodes[end].unseen.add(nodes[end].points);
    }
}

void Solver::call(NodeId pointer, unsigned number) {
    if (pointer == nothing) return;
    Node &node = nodes[find(pointer)];
    node.calls.push_back(number);
    node.unseen.add(node.points);
}

void Solver::filter(NodeId given, NodeId filter, Through through, NodeId to) {
    if (given == nothing || filter == nothing || to == nothing) return;
    auto number = static_cast<unsigned>(filters.size());
    filters.push_back({given, filter, through, to});
    for (NodeId end : {find(given), find(filter)}) {
        nodes[end].filters.push_back(number);
        nodes[end].unseen.add(nodes[end].points);
    }
}

void Solver::merge(NodeId into, NodeId other) {
    Node &a = nodes[into], &b = nodes[other];
    // Each side's constraints have not seen what only the other side had.
    a.unseen.add(a.points.without(b.points));
    a.unseen.add(b.points.without(a.points));
    a.unseen.add(b.unseen);
    a.fresh.add(a.points.without(b.points));
    a.fresh.add(b.points.without(a.points));
    a.fresh.add(b.fresh);
    a.points.add(b.points);
    a.copies.append(b.copies.begin(), b.copies.end());
    auto append = [](auto &to, auto &from) { to.insert(to.end(), from.begin(), from.end()); };
    append(a.loads, b.loads);
    append(a.stores, b.stores);
    append(a.steps, b.steps);
    append(a.moves, b.moves);
    append(a.calls, b.calls);
    append(a.filters, b.filters);
    // Two hubs of one pointer are the same.
    auto unite = [&](NodeId kept, NodeId gone) {
        if (kept != nothing && gone != nothing && find(kept) != find(gone)) merge(find(kept), find(gone));
    };
    NodeId loaded = b.loaded, stored = b.stored, loadedOfTables = b.loadedOfTables;
    if (a.loaded == nothing) std::swap(a.loaded, loaded);
    if (a.stored == nothing) std::swap(a.stored, stored);
    if (a.loadedOfTables == nothing) std::swap(a.loadedOfTables, loadedOfTables);
    b = Node();
    parents[other] = into;
    unite(nodes[into].loaded, loaded);
    unite(nodes[find(into)].stored, stored);
    unite(nodes[find(into)].loadedOfTables, loadedOfTables);
}

/// Tarjan's algorithm without recursion, over copies and, if `withSteps`, steps; calls `found` with each component,
/// targets before sources.
template <typename Found> void Solver::components(bool withSteps, Found found) {
    auto count = static_cast<NodeId>(nodes.size());
    std::vector<uint32_t> index(count, 0), low(count, 0);
    std::vector<bool> onStack(count, false);
    std::vector<NodeId> stack;
    struct Frame {
        NodeId node;
        size_t next;
    };
    std::vector<Frame> frames;
    uint32_t counter = 0;
    auto degree = [&](NodeId node) { return nodes[node].copies.size() + (withSteps ? nodes[node].steps.size() : 0); };
    auto target = [&](NodeId node, size_t i) {
        size_t copies = nodes[node].copies.size();
        return find(i < copies ? nodes[node].copies[i] : nodes[node].steps[i - copies].to);
    };
    for (NodeId root = 1; root < count; ++root) {
        if (parents[root] != root || index[root] || !degree(root)) continue;
        frames.push_back({root, 0});
        while (!frames.empty()) {
            Frame &frame = frames.back();
            NodeId node = frame.node;
            if (!frame.next) {
                index[node] = low[node] = ++counter;
                stack.push_back(node);
                onStack[node] = true;
            }
            bool descended = false;
            while (frame.next < degree(node)) {
                NodeId to = target(node, frame.next++);
                if (!index[to]) {
                    frames.push_back({to, 0});
                    descended = true;
                    break;
                }
                if (onStack[to]) low[node] = std::min(low[node], index[to]);
            }
            if (descended) continue;
            if (low[node] == index[node]) {
                std::vector<NodeId> component;
                do {
                    component.push_back(stack.back());
                    onStack[stack.back()] = false;
                    stack.pop_back();
                } while (component.back() != node);
                found(component);
            }
            frames.pop_back();
            if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[node]);
        }
    }
}

/// A step within a cycle (p = p + 1 in a loop) is taken any number of times. What a way around adds up to is what the
/// address moves by: nothing where a list is walked (to the next entry's link, and back to its beginning), else any
/// multiple of what all ways around have in common.
void Solver::loosenCyclicSteps() {
    std::vector<NodeId> componentOf(nodes.size(), nothing);
    std::vector<std::vector<NodeId>> cyclic;
    components(true, [&](std::vector<NodeId> &component) {
        for (NodeId member : component) componentOf[member] = component.back();
        cyclic.push_back(std::move(component));
    });
    std::vector<int64_t> position(nodes.size(), 0);
    std::vector<bool> placed(nodes.size(), false);
    for (const std::vector<NodeId> &component : cyclic) {
        auto inside = [&](NodeId node) { return componentOf[node] == component.back(); };
        bool steps = false;
        for (NodeId node : component)
            for (const Step &step : nodes[node].steps) steps |= inside(find(step.to));
        if (!steps) continue;
        uint64_t period = 0;
        std::vector<NodeId> work{component.back()};
        placed[component.back()] = true;
        auto reach = [&](NodeId from, NodeId to, int64_t distance) {
            if (!inside(to)) return;
            if (!placed[to]) {
                placed[to] = true;
                position[to] = position[from] + distance;
                work.push_back(to);
            } else {
                period = std::gcd(period, static_cast<uint64_t>(std::abs(position[from] + distance - position[to])));
            }
        };
        while (!work.empty()) {
            NodeId node = work.back();
            work.pop_back();
            for (NodeId to : nodes[node].copies) reach(node, find(to), 0);
            for (const Step &step : nodes[node].steps) {
                if (inside(find(step.to))) period = std::gcd(period, step.distance.stride);
                reach(node, find(step.to), step.distance.offset);
            }
        }
        if (!period) continue;
        for (NodeId node : component)
            for (Step &step : nodes[node].steps) {
                if (!inside(find(step.to)) || step.distance.stride == period) continue;
                step.distance.stride = period;
                nodes[node].unseen.add(nodes[node].points);
            }
    }
}

/// Merge the nodes of every cycle of copies; returns the remaining ones, sources before what they are copied to.
std::vector<NodeId> Solver::collapseCycles() {
    std::vector<NodeId> order;
    std::vector<std::vector<NodeId>> cycles;
    components(false, [&](std::vector<NodeId> &component) {
        order.push_back(component.back());
        if (component.size() > 1) cycles.push_back(std::move(component));
    });
    for (const auto &cycle : cycles) {
        // Merging may merge hubs along, members of this cycle or others among them.
        for (NodeId member : cycle)
            if (find(member) != find(cycle.back())) merge(find(cycle.back()), find(member));
        NodeId into = find(cycle.back());
        // Copies within the cycle, and double ones, go.
        DenseSet<NodeId> kept;
        SmallVector<NodeId, 2> copies;
        for (NodeId to : nodes[into].copies)
            if (find(to) != into && kept.insert(find(to)).second) {
                copies.push_back(find(to));
                edges.insert(uint64_t{into} << 32 | find(to));
            }
        nodes[into].copies = std::move(copies);
    }
    std::reverse(order.begin(), order.end());
    return order;
}

void Solver::solve() {
    for (bool changed = true; changed; ++rounds) {
        changed = false;
        if (memory.hasFields()) loosenCyclicSteps();
        std::vector<NodeId> order = collapseCycles();
        for (auto [source, target] : std::exchange(pending, {})) {
            NodeId from = find(source), to = find(target);
            if (from != to) nodes[to].points.add(nodes[from].points, nodes[to].fresh);
        }
        for (NodeId ordered : order) {
            NodeId node = find(ordered);
            SparseSet news;
            std::swap(news, nodes[node].fresh);
            if (news.empty()) continue;
            nodes[node].unseen.add(news);
            for (NodeId to : nodes[node].copies)
                if (NodeId target = find(to); target != node) nodes[target].points.add(news, nodes[target].fresh);
        }
        for (NodeId node = 1; node < nodes.size(); ++node) {
            if (parents[node] != node) continue;
            if (!nodes[node].fresh.empty() && nodes[node].copies.empty()) {
                nodes[node].unseen.add(nodes[node].fresh);
                nodes[node].fresh.clear();
            }
            SparseSet news;
            std::swap(news, nodes[node].unseen);
            if (!news.empty()) seen(node, news);
            while (!fresh.empty()) {
                Location location = fresh.back();
                fresh.pop_back();
                appeared(location);
            }
        }
        changed = !pending.empty();
        for (NodeId node = 1; node < nodes.size() && !changed; ++node)
            changed = parents[node] == node && (!nodes[node].fresh.empty() || !nodes[node].unseen.empty());
    }
}

/// Visit the locations that an access of `size` bytes touches where pointers are stored: every eighth byte.
template <typename Visit> void Solver::within(Location location, uint64_t size, Visit visit) {
    visit(location);
    uint64_t offset = memory.offsetOf(location);
    if (!memory.hasFields() || size <= 8 || offset == Memory::restOffset) return;
    constexpr uint64_t mostBytes = 4096;
    for (uint64_t more = 8; more < std::min(size, mostBytes); more += 8)
        visit(memory.at(memory.objectIdOf(location), offset + more));
}

void Solver::seen(NodeId id, const SparseSet &points) {
    for (Location location : points) {
        const Object &object = memory.objectOf(location);
        // Code is neither read nor written.
        if (object.kind == Object::Function) continue;
        bool readOnly = object.isReadOnly();
        bool isTable = readOnly && tablesApart && object.isVirtualTable();
        if (NodeId hub = find(isTable ? nodes[id].loadedOfTables : nodes[id].loaded); hub != nothing) {
            NodeId content = contentOf(location);
            if (readOnly && !memory.hasFields())
                // Initial values are complete after the first round: virtual tables, which all objects of a class
                // share.
                nodes[hub].points.add(nodes[find(content)].points, nodes[hub].fresh);
            else
                addEdge(content, hub);
        }
        if (nodes[id].stored != nothing && !readOnly) addEdge(nodes[id].stored, contentOf(location));
    }
    // Adding copies and nodes moves `nodes`, so constraints are read by index.
    for (size_t i = 0; i < nodes[id].loads.size(); ++i) {
        Access access = nodes[id].loads[i];
        for (Location location : points)
            within(location, access.size, [&](Location part) { addEdge(contentOf(part), access.other); });
    }
    for (size_t i = 0; i < nodes[id].stores.size(); ++i) {
        Access access = nodes[id].stores[i];
        for (Location location : points)
            if (!memory.objectOf(location).isReadOnly())
                within(location, access.size, [&](Location part) { addEdge(access.other, contentOf(part)); });
    }
    for (size_t i = 0; i < nodes[id].steps.size(); ++i) {
        Step step = nodes[id].steps[i];
        for (Location location : points) stepFrom(location, step);
    }
    for (size_t i = 0; i < nodes[id].moves.size(); ++i) {
        unsigned move = nodes[id].moves[i];
        // A cycle may have made source and target one.
        bool isSource = find(moves[move].source) == id, isTarget = find(moves[move].target) == id;
        for (Location location : points) {
            if (isSource) moveFrom(move, location);
            if (isTarget) moveTo(move, location);
        }
    }
    for (size_t i = 0; i < nodes[id].calls.size(); ++i) {
        unsigned number = nodes[id].calls[i];
        for (Location location : points) {
            const Object &object = memory.objectOf(location);
            if (object.kind == Object::Function || (tablesApart && object.isVirtualTable()))
                onCallee(number, cast<GlobalObject>(object.site));
        }
    }
    for (size_t i = 0; i < nodes[id].filters.size(); ++i) {
        unsigned number = nodes[id].filters[i];
        Filter &filter = filters[number];
        bool wider = false;
        if (find(filter.filter) == id)
            for (Location location : points)
                wider |=
                    filter.known.insert(filter.through == Through::Objects ? memory.objectIdOf(location) : location);
        if (wider) pass(number, nodes[find(filter.given)].points);
        if (find(filter.given) == id) pass(number, points);
    }
}

/// Pass on what of some locations a filter lets through.
void Solver::pass(unsigned number, const SparseSet &given) {
    const Filter &filter = filters[number];
    SparseSet passed;
    for (Location location : given)
        if (filter.lets(memory, location) || memory.objectOf(location).kind == Object::Library) passed.insert(location);
    Node &to = nodes[find(filter.to)];
    to.points.add(passed, to.fresh);
}

/// Take a copy between very many places for one of anything in all their objects.
bool Solver::coarsen(unsigned number) {
    constexpr size_t most = 32;
    Move &move = moves[number];
    if (move.coarse) return true;
    if (move.sources <= most && move.targets.size() <= most) return false;
    move.coarse = true;
    NodeId source = move.source, target = move.target;
    NodeId anySource = newNode(), anyTarget = newNode(), middle = newNode();
    step(source, anySource, anywhere);
    step(target, anyTarget, anywhere);
    load(anySource, middle, 8);
    store(middle, anyTarget, 8);
    return true;
}

void Solver::moveFrom(unsigned move, Location source) {
    ++moves[move].sources;
    if (coarsen(move)) return;
    ObjectId object = memory.objectIdOf(source);
    uint64_t from = memory.offsetOf(source);
    flows[object].push_back({move, from});
    for (const auto &[offset, there] : memory[object].fields) moveAt(move, from, there);
}

void Solver::moveTo(unsigned move, Location target) {
    if (memory.objectOf(target).isReadOnly() || !moves[move].targets.insert(target) || coarsen(move)) return;
    std::vector<std::pair<uint64_t, NodeId>> middles(moves[move].middles.begin(), moves[move].middles.end());
    for (auto [distance, middle] : middles)
        addEdge(middle, contentOf(memory.at(memory.objectIdOf(target), memory.offsetOf(target) + distance)));
}

/// Copy what `location` holds, in an object that is copied from offset `from` on.
void Solver::moveAt(unsigned move, uint64_t from, Location location) {
    if (moves[move].coarse) return;
    uint64_t offset = memory.offsetOf(location);
    bool rest = offset == Memory::restOffset || from == Memory::restOffset;
    if (!rest && (offset < from || offset - from >= moves[move].size)) return;
    uint64_t distance = rest ? Memory::restOffset : offset - from;
    auto [at, isNew] = moves[move].middles.try_emplace(distance, nothing);
    if (isNew) {
        NodeId middle = at->second = newNode();
        SparseSet targets = moves[move].targets;
        for (Location target : targets) {
            uint64_t to = rest ? Memory::restOffset : memory.offsetOf(target) + distance;
            addEdge(middle, contentOf(memory.at(memory.objectIdOf(target), to)));
        }
    }
    addEdge(contentOf(location), moves[move].middles[distance]);
}

void Solver::appeared(Location location) {
    ObjectId object = memory.objectIdOf(location);
    uint64_t at = memory.offsetOf(location);
    if (auto found = walkers.find(object); found != walkers.end())
        for (const Walker &walker : std::vector(found->second)) meet(object, walker, at);
    if (auto found = flows.find(object); found != flows.end()) {
        // Making a target's location may add to the very list.
        for (size_t i = 0; i < flows[object].size(); ++i) {
            Flow flow = flows[object][i];
            moveAt(flow.move, flow.from, location);
        }
    }
}

} // namespace catena
